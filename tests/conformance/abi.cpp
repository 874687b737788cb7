// SPDX-License-Identifier: Apache-2.0
//
// What every plugin owes its host: a true descriptor, an entry that works under older and newer
// hosts, complete tables, and a process left as it was.
#include <fenv.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <clocale>
#include <cstddef>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "conformance/loaded.h"
#include "plugin/elf.h"

namespace orrery::judge {
namespace {

constexpr uint32_t kinds[] = {ORR_KIND_KERNEL, ORR_KIND_COMM, ORR_KIND_STRATEGY, ORR_KIND_OBSERVER,
                              ORR_KIND_DEVICE, ORR_KIND_OP,   ORR_KIND_DATA,     kind_boot};

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

void descriptor(const Subject& subject) {
  const orr_plugin& d = subject.descriptor;
  const std::string name = d.name;
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_letter))
    throw Fault("plugin.h: \"what the user types\"", "a name of a-z, 0-9, _ and -",
                "'" + name + "'");
  if (!d.version[0] || !d.summary[0])
    throw Fault("plugin.h: orr_plugin", "a version and a summary", "an empty one");
  for (uint32_t kind : kinds) {
    if (!(d.kinds & kind)) continue;
    const auto* end = d.interfaces + std::min<uint32_t>(d.n_interfaces, ORR_MAX_INTERFACES);
    const bool served = std::any_of(d.interfaces, end, [&](const orr_interface_id& i) {
      return std::string(i.id) == kind_name(kind) && i.min <= 1 && i.max >= 1;
    });
    if (!served)
      throw Fault("plugin.h: \"An interface that the plugin has\"",
                  fmt::format("{0}/1 among its interfaces, since its kinds have ORR_KIND of {0}",
                              kind_name(kind)),
                  fmt::format("{} interfaces without it", d.n_interfaces));
  }
}

// Others would take the place of equal names in the host and in other plugins.
void exports(const Subject& subject) {
  std::vector<std::string> names = exported_symbols(subject.path);
  if (names == std::vector<std::string>{"orrery_plugin"}) return;
  const auto own = std::find(names.begin(), names.end(), "orrery_plugin");
  if (own != names.end()) names.erase(own);
  const size_t n = names.size();
  names.resize(std::min<size_t>(n, 3));
  throw Fault("plugin.h: \"A plugin exports exactly one symbol\"",
              "`orrery_plugin` alone; link with the version script that pkg-config orrery names",
              n == 0 ? "no exported symbol"
                     : fmt::format("{} others: {}{}", n, join(names, ", "), n > 3 ? ", ..." : ""));
}

void load_under(const Subject& subject, Fit fit) {
  Loaded plugin(subject, fit);
  for (uint32_t kind : kinds)
    if ((subject.descriptor.kinds & kind) && !plugin.get(kind_name(kind), 1))
      throw Fault("plugin.h: \"returns the plugin's table, the same each time, or NULL\"",
                  fmt::format("a table for {}/1, which its descriptor lists", kind_name(kind)),
                  "NULL");
  if (!plugin.tails_intact())
    throw Fault("plugin.h: orr_exports.size",
                "nothing written beyond the structs that the plugin knows",
                "bytes of a newer host's were overwritten");
}

void load(const Subject& subject) { load_under(subject, Fit::kExact); }
void newer_host(const Subject& subject) { load_under(subject, Fit::kLonger); }

void unknown_interfaces(const Subject& subject) {
  Loaded plugin(subject, Fit::kExact);
  for (const auto& [id, version] : {std::pair("weather", 1u), {"host", 1u}})
    if (plugin.get(id, version))
      throw Fault("plugin.h: \"returns the plugin's table, the same each time, or NULL\"",
                  fmt::format("NULL for {}/{}", id, version), "a table");
}

struct Slot {
  const char* name;
  size_t at;
};

#define SLOT(T, name) \
  { #name, offsetof(T, name) }
const std::vector<Slot>& required_slots(uint32_t kind) {
  static const std::vector<Slot> kernel = {
      SLOT(orr_kernel_api, probe),   SLOT(orr_kernel_api, supports), SLOT(orr_kernel_api, measure),
      SLOT(orr_kernel_api, prepare), SLOT(orr_kernel_api, release),  SLOT(orr_kernel_api, launch)};
  static const std::vector<Slot> comm = {
      SLOT(orr_comm_api, probe),   SLOT(orr_comm_api, world),      SLOT(orr_comm_api, split),
      SLOT(orr_comm_api, rank),    SLOT(orr_comm_api, world_size), SLOT(orr_comm_api, post),
      SLOT(orr_comm_api, wait),    SLOT(orr_comm_api, abort),      SLOT(orr_comm_api, async_error),
      SLOT(orr_comm_api, destroy), SLOT(orr_comm_api, bytes_sent)};
  static const std::vector<Slot> strategy = {SLOT(orr_strategy_api, describe)};
  static const std::vector<Slot> observer = {
      SLOT(orr_observer_api, start), SLOT(orr_observer_api, observe), SLOT(orr_observer_api, stop)};
  static const std::vector<Slot> op = {SLOT(orr_op_api, count), SLOT(orr_op_api, describe),
                                       SLOT(orr_op_api, example), SLOT(orr_op_api, shape)};
  static const std::vector<Slot> data = {};  // a reader's or a tokenizer's: data_tests.cpp
  static const std::vector<Slot> boot = {SLOT(orr_boot_api, started), SLOT(orr_boot_api, put),
                                         SLOT(orr_boot_api, get)};
  static const std::vector<Slot> device = {
      SLOT(orr_device_api, facts),          SLOT(orr_device_api, open),
      SLOT(orr_device_api, allocate),       SLOT(orr_device_api, free),
      SLOT(orr_device_api, copy),           SLOT(orr_device_api, stream_create),
      SLOT(orr_device_api, stream_destroy), SLOT(orr_device_api, event_create),
      SLOT(orr_device_api, event_destroy),  SLOT(orr_device_api, event_record),
      SLOT(orr_device_api, stream_wait),    SLOT(orr_device_api, event_sync)};
  switch (kind) {
    case ORR_KIND_KERNEL: return kernel;
    case ORR_KIND_COMM: return comm;
    case ORR_KIND_STRATEGY: return strategy;
    case ORR_KIND_OBSERVER: return observer;
    case ORR_KIND_OP: return op;
    case ORR_KIND_DATA: return data;
    case kind_boot: return boot;
    default: return device;
  }
}
#undef SLOT

void slots(const Subject& subject) {
  Loaded plugin(subject, Fit::kExact);
  for (uint32_t kind : kinds) {
    if (!(subject.descriptor.kinds & kind)) continue;
    const void* table = plugin.get(kind_name(kind), 1);
    uint32_t size = 0;
    if (table) std::memcpy(&size, table, sizeof size);
    for (const Slot& slot : required_slots(kind)) {
      void* function = nullptr;
      if (slot.at + sizeof function <= size)
        std::memcpy(&function, static_cast<const char*>(table) + slot.at, sizeof function);
      if (!function)
        throw Fault(fmt::format("{0}.h: orr_{0}_api.{1}", kind_name(kind), slot.name),
                    fmt::format("a function, inside of `size`, which is sizeof(orr_{}_api)",
                                kind_name(kind)),
                    fmt::format("none in a table whose size says {} bytes", size));
    }
  }
}

// What a plugin might change in the process behind everybody's back: by name.
std::map<std::string, std::string> process_state() {
  std::map<std::string, std::string> state = {{"rounding", std::to_string(fegetround())},
                                              {"locale", std::setlocale(LC_ALL, nullptr)},
                                              {"directory", std::filesystem::current_path()}};
  for (int number : {SIGINT, SIGTERM, SIGPIPE, SIGCHLD}) {
    struct sigaction now;
    sigaction(number, nullptr, &now);
    state[fmt::format("handler of signal {}", number)] =
        fmt::format("{}", reinterpret_cast<void*>(now.sa_handler));
  }
  return state;
}

void process(const Subject& subject) {
  const auto before = process_state();
  const volatile float tiny = 1e-39f, one = 1;
  Loaded plugin(subject, Fit::kExact);
  for (uint32_t kind : kinds) plugin.get(kind_name(kind), 1);
  for (const auto& [what, value] : process_state())
    if (before.at(what) != value)
      throw Fault("plugin.h: loading and asking for tables has no side effects",
                  fmt::format("{} {}", what, before.at(what)), value);
  if (tiny * one == 0)
    throw Fault("ops.h: \"Subnormals are kept (MXCSR default)\"", "1e-39 * 1 = 1e-39",
                "0 after it was loaded");
}

void lifetime(const Subject& subject) {
  Loaded plugin(subject, Fit::kExact);
  for (int i = 0; i < 2; ++i)
    for (uint32_t kind : kinds)
      if (subject.descriptor.kinds & kind) {
        const void* first = plugin.get(kind_name(kind), 1);
        if (first != plugin.get(kind_name(kind), 1))
          throw Fault("plugin.h: \"Tables live until `shutdown(self)`\"", "one table per interface",
                      "two");
      }
  plugin.shut_down();
}

}  // namespace

std::vector<Test> plugin_tests() {
  return {{"plugin.descriptor", 10, descriptor},
          {"plugin.exports", 10, exports},
          {"plugin.load", 10, load},
          {"plugin.newer_host", 10, newer_host},
          {"plugin.unknown_interfaces", 10, unknown_interfaces},
          {"plugin.slots", 10, slots},
          {"plugin.process", 10, process},
          {"plugin.lifetime", 10, lifetime}};
}

}  // namespace orrery::judge
