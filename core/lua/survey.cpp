// SPDX-License-Identifier: Apache-2.0
//
// What this machine and its plugins offer, for the subcommands that tell of it
// (scripts/orrery/cli).
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/config.h"
#include "base/machine.h"
#include "base/places.h"
#include "base/process.h"
#include "launch/affinity.h"
#include "launch/environment.h"
#include "lua/call.h"
#include "plugin/registry.h"

namespace orrery::lua {
namespace {

// Sets packages, nodes, cores and threads of the table on top of the stack, and the share that each
// of `ranks` would get: of the cores that this process may use, or of all of another machine.
void set_cores(lua_State* L, int ranks) {
  const Topology machine = Topology::load();
  const std::vector<Core> cores = machine.here ? machine.allowed(allowed_cpus()) : machine.cores;
  size_t threads = 0;
  for (const Core& core : cores) threads += core.size();
  set_field(L, "packages", machine.packages), set_field(L, "nodes", machine.nodes);
  set_field(L, "here", machine.here);
  set_field(L, "cores", uint64_t{cores.size()}), set_field(L, "threads", uint64_t{threads});
  std::vector<CpuShare> shares;
  for (int r = 0; r < ranks; ++r) shares.push_back(share_of(cores, r, ranks));
  push_list(L, shares, [](lua_State* state, const CpuShare& share) {
    lua_newtable(state);
    set_field(state, "cpus", cpu_list(share.cpus)), set_field(state, "threads", share.threads);
  });
  lua_setfield(L, -2, "shares");
}

// By whom this process was started, and by which plugin its ranks meet.
std::string launched_by() try {
  const World w = detect();
  if (w.source == World{}.source) return "none: a single process";
  return fmt::format("{}, as rank {} of {}{}", w.source, w.rank, w.size,
                     w.boot.empty() ? "" : fmt::format("; ranks meet by '{}'", w.boot));
} catch (const Error& e) {
  return e.what();
}

Pushed machine(lua_State* L, int64_t ranks) {
  lua_newtable(L);
  set_field(L, "launched_by", launched_by());
  set_field(L, "version", ORRERY_VERSION), set_field(L, "compiler", ORR_BUILD_TEXT);
  set_field(L, "lua", LUA_RELEASE + std::strlen("Lua "));
  set_field(L, "cpu", cpu_model()), set_field(L, "features", cpu_features());
  set_field(L, "allowed", uint64_t{allowed_cpus().size()});
  set_field(L, "online", int64_t{sysconf(_SC_NPROCESSORS_ONLN)});
  set_field(L, "memory_available", memory_available());
  set_field(L, "memory_total", memory_total());
  struct statvfs shared;
  if (statvfs("/dev/shm", &shared) == 0) {
    set_field(L, "shared_available", uint64_t{shared.f_frsize * shared.f_bavail});
    set_field(L, "shared_total", uint64_t{shared.f_frsize * shared.f_blocks});
  }
  set_cores(L, static_cast<int>(ranks));
  return {1};
}

// A kind that a file has; 0 if its descriptor cannot be read.
struct Found {
  const PluginFile& file;
  uint32_t kind;
};

std::vector<Found> found_plugins() {
  std::vector<Found> all;
  for (const PluginFile& file : Registry::get().files()) {
    if (!file.descriptor.magic) all.push_back({file, 0});
    for (uint32_t kind = 1; kind && kind <= file.descriptor.kinds; kind *= 2)
      if (file.descriptor.kinds & kind) all.push_back({file, kind});
  }
  return all;
}

Pushed plugins(lua_State* L) {
  push_list(L, found_plugins(), [](lua_State* state, const Found& found) {
    const orr_plugin& d = found.file.descriptor;
    lua_newtable(state);
    set_field(state, "kind", found.kind ? kind_name(found.kind) : "?");
    set_field(state, "name", found.kind ? d.name : "?");
    set_field(state, "version", found.kind ? d.version : "?");
    set_field(state, "summary", found.kind ? d.summary : "");
    set_field(state, "path", found.file.path.string());
    set_field(state, "reason", found.file.refusal);
  });
  return {1};
}

// Loads the plugin's table and calls its probe. Returns why it cannot be used here; "" if it can.
std::string ask(const Found& found) {
  const std::string name = found.file.descriptor.name;
  Registry& registry = Registry::get();
  char reason[256] = "no reason given";
  int32_t score = 1;
  switch (found.kind) {
    case ORR_KIND_KERNEL: {
      const orr_kernel_api& kernel = registry.kernel(name);
      score = kernel.probe(kernel.self, reason, sizeof reason);
      break;
    }
    case ORR_KIND_COMM: {
      const orr_comm_api& comm = registry.comm(found.file);
      orr_comm_caps caps{};
      caps.size = sizeof caps;
      score = comm.probe(comm.self, &caps, reason, sizeof reason);
      break;
    }
    case ORR_KIND_STRATEGY: registry.strategy(name); break;
    case ORR_KIND_OBSERVER: registry.observer(name); break;
    case ORR_KIND_OP: registry.op(name); break;
    case ORR_KIND_DATA: registry.data(name); break;
    case kind_boot: registry.boot(name); break;
    default: registry.device(name);
  }
  return score > 0 ? "" : reason;
}

// A copy of this process tries the plugin first, because a damaged one may end the process.
std::string refusal(int64_t number) try {
  constexpr int seconds = 30;
  const Found found = found_plugins().at(static_cast<size_t>(number - 1));
  const std::string end = end_of_trial([&] { ask(found); }, seconds);
  if (end.empty()) return ask(found);
  return fmt::format("{}: loading it ended a process: {}; the file may be damaged: build it again",
                     found.file.path.string(), end);
} catch (const Error& e) {
  return e.what();
}

Pushed facts(lua_State* L, int64_t number) {
  const Found found = found_plugins().at(static_cast<size_t>(number - 1));
  push_list(L, Registry::get().facts(found.file), [](lua_State* state, const auto& fact) {
    lua_newtable(state);
    set_field(state, "name", fact.first), set_field(state, "text", fact.second);
  });
  return {1};
}

std::string templates() {
  const std::string found = own_directory(ORRERY_SOURCE_TEMPLATEDIR, ORRERY_TEMPLATEDIR);
  if (!std::filesystem::is_directory(found))
    fail(ORR_UNAVAILABLE, "the templates are not installed in {}; install the program again",
         found);
  return found;
}

std::string make_directory(const std::string& path) {
  std::error_code error;
  if (std::filesystem::create_directories(path, error)) return "";
  return error ? "cannot be made (" + error.message() + ")" : "is there already";
}

}  // namespace

std::vector<Api> survey_api() {
  return {
      {"engine.machine(ranks: integer) -> table; Facts of this machine and of the program, and the "
       "shares of its cores that so many ranks would get.",
       call<machine>},
      {"engine.plugins() -> table[]; The plugin files by kind: kind, name, version, summary, path "
       "and reason: why it is refused, or \"\".",
       call<plugins>},
      {"engine.refusal(number: integer) -> string; Why a plugin, by its place in that list, cannot "
       "be used here, after loading it; \"\" if it can.",
       call<refusal>},
      {"engine.facts(number: integer) -> table[]; What a plugin, by its place in that list, has "
       "found out about this machine: name and text.",
       call<facts>},
      {"engine.templates() -> string; The directory of the templates of plugins.", call<templates>},
      {"engine.make_directory(path: string) -> string; Makes a directory and those "
       "above it; \"\", or why it cannot.",
       call<make_directory>},
  };
}

}  // namespace orrery::lua
