// SPDX-License-Identifier: Apache-2.0
#include "launch/boot.h"

#include <orrery/boot.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include "base/error.h"
#include "launch/meeting.h"
#include "launch/socket.h"
#include "launch/token.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

constexpr const char *variable = "ORRERY_BOOT", *key = "meeting";

std::string title(const std::string& plugin) { return fmt::format("boot plugin '{}'", plugin); }

orr_boot_world ask(const std::string& plugin) {
  const orr_boot_api& api = Registry::get().boot(plugin);
  orr_boot_world told{};
  told.size = sizeof told;
  check(api.started(api.self, &told), title(plugin));
  told.reason[sizeof told.reason - 1] = 0;
  const auto is_rank = [](int rank, int size) { return rank >= 0 && rank < size; };
  if (told.started && !(is_rank(told.rank, told.world_size) && told.local_size <= told.world_size &&
                        is_rank(told.local_rank, told.local_size)))
    fail(ORR_INVALID,
         "{} says that this is rank {} of {}, and on this host {} of {}: ranks count from 0, and "
         "the host has no more than all",
         title(plugin), told.rank, told.world_size, told.local_rank, told.local_size);
  return told;
}

// The launcher's variables and the plugin may both speak: they must say the same.
World joined(World w, const std::string& plugin, const orr_boot_world& told) {
  w.boot = plugin;
  if (w.source != World{}.source) {
    if (w.rank == told.rank && w.size == told.world_size) return w;
    fail(ORR_INVALID,
         "two launchers disagree: this is rank {} of {} ({}), but rank {} of {} ({}): unset the "
         "variables of one of them",
         w.rank, w.size, w.source, told.rank, told.world_size, title(plugin));
  }
  w.rank = told.rank, w.size = told.world_size;
  w.local_rank = told.local_rank, w.local_size = told.local_size;
  w.source = title(plugin);
  return w;
}

World with_named(const World& w, const std::string& plugin) try {
  const orr_boot_world told = ask(plugin);
  if (told.started) return joined(w, plugin, told);
  fail(ORR_UNAVAILABLE, "{} has not started this process ({}): start it so, or unset {}",
       title(plugin), *told.reason ? told.reason : "it gives no reason", variable);
} catch (const Error& e) {
  fail(e.code(), "{}={}: {}", variable, plugin, e.what());
}

// Where rank 0 listens for ranks on other hosts.
Endpoint own_place() {
  const char* address = std::getenv("MASTER_ADDR");
  return {address ? address : own_address(), port_number(choose_port())};
}

// Rank 0 listens before it says where. The name of the job is new, so that no plugin needs to have
// one that no other job has.
std::unique_ptr<Store> gather(World& world, const orr_boot_api& api, bool on_one_host,
                              std::unique_ptr<Store> launcher) {
  world.job = new_token().substr(0, 16);
  const std::string token = new_token();
  const Endpoint place = on_one_host ? Endpoint{meeting_place(world)} : own_place();
  std::unique_ptr<Store> store = meet(world, place, token, deadline_ns(), std::move(launcher));
  const std::string line = fmt::format("{} {} {} {}", world.job, token, place.host, place.port);
  check(api.put(api.self, key, line.data(), line.size()), title(world.boot));
  return store;
}

std::string line_of_rank_0(const World& world, const orr_boot_api& api) {
  char line[1024];
  uint64_t bytes = 0;
  check(api.get(api.self, 0, key, line, sizeof line, &bytes, deadline_ns()),
        fmt::format("rank {} of {} ({}) waits for rank 0", world.rank, world.size,
                    title(world.boot)));
  return {line, std::min<size_t>(bytes, sizeof line)};
}

}  // namespace

World with_boot(const World& w) {
  const char* named = std::getenv(variable);
  if (named && *named) return with_named(w, named);
  if (w.source != World{}.source) return w;
  World found = w;
  for (const std::string& plugin : Registry::get().names(kind_boot)) {
    if (!Registry::get().loads(kind_boot, plugin)) continue;
    const orr_boot_world told = ask(plugin);
    if (!told.started) continue;
    if (!found.boot.empty())
      fail(ORR_INVALID,
           "boot plugins '{}' and '{}' both say that they have started this process: name one, "
           "{}={}",
           found.boot, plugin, variable, found.boot);
    found = joined(w, plugin, told);
  }
  return found;
}

std::unique_ptr<Store> meet_by_boot(World world, std::unique_ptr<Store> launcher) {
  const orr_boot_api& api = Registry::get().boot(world.boot);
  if (world.rank == 0)
    return gather(world, api, world.local_size == world.size, std::move(launcher));
  const std::string line = line_of_rank_0(world, api);
  std::istringstream parts(line);
  std::string token;
  Endpoint place;
  if (!(parts >> world.job >> token >> place.host >> place.port))
    fail(ORR_FAILED, "{} has given {} bytes for rank 0's '{}' that are not what rank 0 has put",
         title(world.boot), line.size(), key);
  return meet(world, place, token, deadline_ns(), std::move(launcher));
}

}  // namespace orrery
