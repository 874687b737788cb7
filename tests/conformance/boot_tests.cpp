// SPDX-License-Identifier: Apache-2.0
//
// A boot plugin: what it says of this process, and, where it has started it (the judge is then one
// rank of one), values that come back as they were put.
#include <orrery/boot.h>

#include <chrono>
#include <cstring>

#include "base/error.h"
#include "conformance/guarded.h"
#include "conformance/loaded.h"
#include "plugin/host.h"

namespace orrery::judge {
namespace {

constexpr const char* kWorld = "boot.h: \"What `started` says\"";

orr_boot_world ask(const orr_boot_api& api, Fit fit) {
  Guarded<orr_boot_world> world({}, fit);
  check(api.started(api.self, world.get()), "started");
  if (!world.tail_intact())
    throw Fault(kWorld, "nothing written behind `size`",
                "bytes of a newer host's were overwritten");
  return *world.get();
}

std::string text_of(const orr_boot_world& w) {
  return w.started ? fmt::format("rank {} of {}, {} of {} on this host", w.rank, w.world_size,
                                 w.local_rank, w.local_size)
                   : fmt::format("not started: '{:.255}'", w.reason);
}

void started(const Subject& subject) {
  Loaded plugin(subject, Fit::kExact);
  const auto& api = plugin.table<orr_boot_api>(kind_boot);
  const orr_boot_world first = ask(api, Fit::kLonger), again = ask(api, Fit::kExact);
  if (text_of(first) != text_of(again))
    throw Fault("boot.h: \"Says the same each time\"", text_of(first), text_of(again));
  if (!first.started && (!first.reason[0] || first.reason[sizeof first.reason - 1]))
    throw Fault("boot.h: orr_boot_world.reason", "why not, a text that ends", text_of(first));
  const auto is_rank = [](int rank, int size) { return rank >= 0 && rank < size; };
  if (first.started &&
      !(is_rank(first.rank, first.world_size) && is_rank(first.local_rank, first.local_size) &&
        first.local_size <= first.world_size))
    throw Fault("boot.h: orr_boot_world.rank", "ranks from 0, below their numbers", text_of(first));
}

void values(const Subject& subject) {
  Loaded plugin(subject, Fit::kExact);
  const auto& api = plugin.table<orr_boot_api>(kind_boot);
  const orr_boot_world world = ask(api, Fit::kExact);
  if (!world.started || world.world_size != 1)
    throw Skip("the judge must be started by it, as one rank of one");
  const std::string text(1024, 'x');
  check(api.put(api.self, "judged", text.data(), text.size()), "put");
  std::string got(text.size(), ' ');
  uint64_t bytes = 0;
  constexpr int64_t second = 1000000000;
  check(api.get(api.self, 0, "judged", got.data(), got.size(), &bytes, second), "get");
  if (got != text || bytes != text.size())
    throw Fault("boot.h: orr_boot_api.get", "the value that was put",
                fmt::format("{} bytes", bytes));
  const auto begin = std::chrono::steady_clock::now();
  orr_status* status = api.get(api.self, 0, "never", got.data(), got.size(), &bytes, second);
  const auto waited = std::chrono::steady_clock::now() - begin;
  const int code = host_table().error_code(status);
  host_table().error_release(status);
  if (code != ORR_DEADLINE || waited > std::chrono::seconds(5))
    throw Fault(
        "boot.h: \"Waits for it up to the deadline\"", "ORR_DEADLINE after a second",
        fmt::format("code {} after {:.1f} s", code, std::chrono::duration<double>(waited).count()));
}

}  // namespace

std::vector<Test> boot_tests() {
  return {{"boot.started", 20, started}, {"boot.values", 20, values}};
}

}  // namespace orrery::judge
