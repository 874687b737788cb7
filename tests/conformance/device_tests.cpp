// SPDX-License-Identifier: Apache-2.0
//
// A device by device/1 alone: what it says of itself, its memory, and copies between all tiers
// against memcpy.
#include <cstring>
#include <thread>

#include "base/error.h"
#include "conformance/device_parts.h"
#include "conformance/growth.h"
#include "conformance/loaded.h"

namespace orrery::judge {
namespace {

constexpr const char* copies_contract =
    "device.h: \"Copies between any two of DEVICE, PINNED, COMM and HOST\"";

// Facts are asked before `open`, as a plan without a device does.
void facts_under(const Subject& subject, Fit fit) {
  Loaded plugin(subject, fit);
  const orr_device_api& api = plugin.table<orr_device_api>(ORR_KIND_DEVICE);
  Guarded<orr_device_facts> facts({}, fit);
  check(api.facts(api.self, facts.get()), "facts before open");
  if (!std::memchr(facts->name, 0, sizeof facts->name) || facts->name != subject.name())
    throw Fault("device.h: orr_device_facts.name",
                "the plugin's name, '" + subject.name() + "', before it is opened",
                "'" + std::string(facts->name, strnlen(facts->name, sizeof facts->name)) + "'");
  if (facts->alignment & (facts->alignment - 1))
    throw Fault("device.h: orr_device_facts.alignment", "0 or a power of two",
                std::to_string(facts->alignment));
  if (!facts.tail_intact())
    throw Fault("types.h: structs carry their size", "nothing written beyond what the plugin knows",
                "bytes of a newer host's were overwritten");
}
void facts(const Subject& subject) { facts_under(subject, Fit::kExact); }
void longer_structs(const Subject& subject) { facts_under(subject, Fit::kLonger); }

void expect_zeroed(Room& room, int32_t tier, uint64_t bytes) {
  const std::string fault = first_difference(room.get(), Bytes(bytes));
  if (!fault.empty())
    throw Fault("device.h: allocate, \"zeroed\"",
                fmt::format("{} bytes of tier {}, all 0", bytes, tier_name(tier)), fault);
}

void expect_described(const orr_memory& m, int32_t tier, uint64_t bytes) {
  if (m.size < sizeof m || m.tier != tier || m.bytes < bytes ||
      !std::memchr(m.native_kind, 0, sizeof m.native_kind) || !m.native_kind[0])
    throw Fault("types.h: orr_memory",
                fmt::format("size, tier {}, at least {} bytes and a native_kind", tier, bytes),
                fmt::format("size {}, tier {}, {} bytes", m.size, m.tier, m.bytes));
  if (tier == ORR_TIER_PINNED && !m.host)
    throw Fault("device.h: allocate, \"PINNED, which has a host address\"", "a host address",
                "NULL");
}

// What was freed full of numbers is handed out empty.
void memory(const Subject& subject) {
  Bench bench(subject);
  std::mt19937_64 random(subject.seed);
  for (int32_t tier : {ORR_TIER_DEVICE, ORR_TIER_PINNED})
    for (uint64_t bytes : {uint64_t{1}, uint64_t{3}, uint64_t{4097}, uint64_t{1} << 20})
      for (int round = 0; round < 3; ++round) {
        Room room(bench, tier, bytes);
        expect_described(room.memory(), tier, bytes);
        expect_zeroed(room, tier, bytes);
        room.put(random_bytes(random, bytes));
      }
}

// A tier that no device has, and more than any has: an error in words.
void refusals(const Subject& subject) {
  Bench bench(subject);
  for (const auto& [tier, bytes] :
       {std::pair(int32_t{99}, uint64_t{64}), {ORR_TIER_DEVICE, uint64_t{1} << 60}}) {
    orr_memory* made = nullptr;
    orr_status* status = bench.api.allocate(bench.api.self, tier, bytes, &made);
    const std::string words = status ? host_table().error_message(status) : "";
    host_table().error_release(status);
    if (words.empty())
      throw Fault("types.h: orr_status, \"The outcome of a call\"",
                  fmt::format("an error in words for {} bytes of tier {}", bytes, tier),
                  status ? "an error without words" : "success");
  }
}

struct Cut {
  uint64_t bytes, to, from;
};

void copy_and_compare(Bench& bench, orr_stream* stream, Room& to, Room& from, const Cut& cut,
                      std::mt19937_64& random) {
  const Bytes source = random_bytes(random, 6000), before = random_bytes(random, 6000);
  Bytes want = before;
  std::memcpy(want.data() + cut.to, source.data() + cut.from, cut.bytes);
  from.put(source);
  to.put(before);
  bench.copy(stream, to.part(cut.to, cut.bytes), from.part(cut.from, cut.bytes));
  bench.finish(stream);
  const std::string fault = first_difference(to.get(), want);
  if (!fault.empty())
    throw Fault(
        copies_contract,
        fmt::format("{} bytes from {} at {} to {} at {}, and nothing else", cut.bytes,
                    tier_name(from.memory().tier), cut.from, tier_name(to.memory().tier), cut.to),
        fault);
}

void copies(const Subject& subject) {
  Bench bench(subject);
  std::mt19937_64 random(subject.seed);
  orr_stream* stream = bench.stream();
  for (int32_t to_tier : tiers)
    for (int32_t from_tier : tiers) {
      Room to(bench, to_tier, 6000), from(bench, from_tier, 6000);
      for (const Cut& cut :
           {Cut{0, 5, 5}, Cut{1, 0, 0}, Cut{1, 3, 7}, Cut{5, 1, 2}, Cut{63, 5, 1},
            Cut{4096, 1, 1023}, Cut{4096, 1024, 512}, Cut{5999, 1, 0}, Cut{6000, 0, 0}})
        copy_and_compare(bench, stream, to, from, cut, random);
    }
}

// From one end of an allocation to its other.
void copies_inside(const Subject& subject) {
  Bench bench(subject);
  std::mt19937_64 random(subject.seed);
  orr_stream* stream = bench.stream();
  for (int32_t tier : tiers) {
    Room room(bench, tier, 4000);
    Bytes want = random_bytes(random, 4000);
    room.put(want);
    std::memcpy(want.data() + 2001, want.data() + 3, 1777);
    bench.copy(stream, room.part(2001, 1777), room.part(3, 1777));
    bench.finish(stream);
    const std::string fault = first_difference(room.get(), want);
    if (!fault.empty())
      throw Fault(copies_contract, fmt::format("1777 bytes moved inside of {}", tier_name(tier)),
                  fault);
  }
}

// Streams, events and copies of another thread than the one that opened the device.
void threads(const Subject& subject) {
  Bench bench(subject);
  std::mt19937_64 random(subject.seed);
  Room to(bench, ORR_TIER_DEVICE, 5000), from(bench, ORR_TIER_PINNED, 5000);
  const Bytes want = random_bytes(random, 5000);
  from.put(want);
  std::string error;
  std::thread([&] {
    try {
      orr_stream* stream = bench.stream();
      bench.copy(stream, to.whole(), from.whole());
      bench.finish(stream);
      bench.api.stream_destroy(bench.api.self, stream);
    } catch (const Error& e) {
      error = e.what();
    }
  }).join();
  if (error.empty()) error = first_difference(to.get(), want);
  if (!error.empty())
    throw Fault("device.h: \"any thread of the process\"", "a copy on another thread's stream",
                error);
}

void leaks(const Subject& subject) {
  Bench bench(subject);
  const std::string grown = growth([&] {
    Room room(bench, ORR_TIER_DEVICE, 100), other(bench, ORR_TIER_PINNED, 100);
    orr_stream* stream = bench.stream();
    orr_event* event = bench.event();
    bench.copy(stream, room.whole(), other.whole());
    bench.record(event, stream);
    bench.sync(event);
    bench.api.event_destroy(bench.api.self, event);
    bench.api.stream_destroy(bench.api.self, stream);
  });
  if (!grown.empty())
    throw Fault("device.h: free, stream_destroy, event_destroy",
                "memory, streams and events that leave nothing", "each round keeps " + grown);
}

}  // namespace

std::vector<Test> device_tests() {
  std::vector<Test> tests = {
      {"device.facts", 20, facts},     {"device.longer_structs", 20, longer_structs},
      {"device.memory", 60, memory},   {"device.refusals", 30, refusals},
      {"device.copies", 60, copies},   {"device.copies_inside", 30, copies_inside},
      {"device.threads", 30, threads}, {"device.leaks", 60, leaks}};
  for (Test& test : device_order_tests()) tests.push_back(std::move(test));
  return tests;
}

}  // namespace orrery::judge
