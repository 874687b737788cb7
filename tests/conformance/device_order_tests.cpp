// SPDX-License-Identifier: Apache-2.0
//
// What happens before what on a device: work of one stream, streams that wait for each other, the
// end of an event, and recorded work. The model is a list of memcpys done one after another.
#include <cstring>

#include "base/error.h"
#include "conformance/device_parts.h"
#include "conformance/growth.h"
#include "conformance/loaded.h"

namespace orrery::judge {
namespace {

constexpr uint64_t room_bytes = 3000;

// Rooms of all tiers and what they should hold.
struct Model {
  Model(Bench& bench, uint64_t seed) : bench(bench), random(seed) {
    for (int32_t tier : tiers)
      for (int i = 0; i < 2; ++i) {
        rooms.push_back(std::make_unique<Room>(bench, tier, room_bytes));
        want.push_back(random_bytes(random, room_bytes));
        rooms.back()->put(want.back());
      }
  }
  // Any piece of one room to any place of another.
  void copy(orr_stream* stream) {
    const uint64_t bytes = random() % 900, to_at = random() % 2000, from_at = random() % 2000;
    const size_t to = random() % rooms.size(),
                 from = (to + 1 + random() % (rooms.size() - 1)) % rooms.size();
    std::memcpy(want[to].data() + to_at, want[from].data() + from_at, bytes);
    bench.copy(stream, rooms[to]->part(to_at, bytes), rooms[from]->part(from_at, bytes));
  }
  void expect(const char* contract, const std::string& what) {
    for (size_t i = 0; i < rooms.size(); ++i) {
      const std::string fault = first_difference(rooms[i]->get(), want[i]);
      if (!fault.empty())
        throw Fault(
            contract, what,
            fmt::format("in memory of tier {} {}", tier_name(rooms[i]->memory().tier), fault));
    }
  }

  Bench& bench;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Room>> rooms;
  std::vector<Bytes> want;
};

void order(const Subject& subject) {
  Bench bench(subject);
  Model model(bench, subject.seed);
  orr_stream* stream = bench.stream();
  for (int i = 0; i < 300; ++i) model.copy(stream);
  bench.finish(stream);
  model.expect("device.h: \"work on one stream runs in the order in which it was enqueued\"",
               "what 300 copies leave one after another");
}

// Every copy on another stream than the one before, which it waits for.
void waits(const Subject& subject) {
  Bench bench(subject);
  Model model(bench, subject.seed);
  std::vector<orr_stream*> streams = {bench.stream(), bench.stream(), bench.stream()};
  std::vector<orr_event*> events = {bench.event(), bench.event(), bench.event()};
  size_t last = 0;
  for (int i = 0; i < 300; ++i) {
    const size_t next = (last + 1 + model.random() % 2) % 3;
    bench.record(events[last], streams[last]);
    bench.wait(streams[next], events[last]);
    for (uint64_t n = model.random() % 3; n > 0; --n) model.copy(streams[next]);
    last = next;
  }
  bench.finish(streams[last]);
  model.expect("device.h: stream_wait, \"Makes later work of the stream wait\"",
               "what copies leave that waited for each other");
}

// Once an event is done its buffers are the caller's again: pinned memory is read and written at
// once.
void events(const Subject& subject) {
  Bench bench(subject);
  std::mt19937_64 random(subject.seed);
  const uint64_t n = 1 << 20;
  Room source(bench, ORR_TIER_PINNED, n), there(bench, ORR_TIER_DEVICE, n),
      back(bench, ORR_TIER_PINNED, n);
  orr_stream* stream = bench.stream();
  orr_event* event = bench.event();
  for (int round = 0; round < 8; ++round) {
    const Bytes want = random_bytes(random, n);
    source.put(want);
    bench.copy(stream, there.whole(), source.whole());
    bench.record(event, stream);
    bench.sync(event);
    source.put(Bytes(n, 0xEE));
    bench.copy(stream, back.whole(), there.whole());
    bench.record(event, stream);  // the same event stands for what is new
    bench.sync(event);
    const std::string fault = first_difference(back.get(), want);
    if (!fault.empty())
      throw Fault(
          "device.h: \"An event that is recorded on a stream is done when all work before it is "
          "done\"",
          fmt::format("round {}: what was copied before the event", round), fault);
  }
}

// A deadline that passes is told as such, costs nothing, and the work goes on.
void deadline(const Subject& subject) {
  Bench bench(subject);
  std::mt19937_64 random(subject.seed);
  const uint64_t n = 8 << 20;
  Room a(bench, ORR_TIER_DEVICE, n), b(bench, ORR_TIER_DEVICE, n);
  const Bytes want = random_bytes(random, n);
  a.put(want);
  orr_stream* stream = bench.stream();
  orr_event* event = bench.event();
  for (int i = 0; i < 16; ++i) bench.copy(stream, (i % 2 ? a : b).whole(), (i % 2 ? b : a).whole());
  bench.record(event, stream);
  orr_status* status = bench.api.event_sync(bench.api.self, event, 1);
  const int32_t code = host_table().error_code(status);
  host_table().error_release(status);
  if (code != ORR_OK && code != ORR_DEADLINE)
    throw Fault("device.h: event_sync, \"at most deadline_ns (then returns ORR_DEADLINE\"",
                "success or ORR_DEADLINE after 1 ns", fmt::format("code {}", code));
  bench.sync(event);
  const std::string fault = first_difference(b.get(), want);
  if (!fault.empty())
    throw Fault("device.h: event_sync", "work that a passed deadline did not disturb", fault);
}

// Recorded work is kept and not run; each launch runs it on what the buffers hold then.
void recording(const Subject& subject) {
  Bench bench(subject);
  orr_stream* stream = bench.stream();
  if (!bench.records(stream)) throw Skip("it records nothing, which is optional");
  const char* contract = "device.h: \"each launch of the graph runs all of it in order\"";
  std::mt19937_64 random(subject.seed);
  Room a(bench, ORR_TIER_DEVICE, 500), b(bench, ORR_TIER_DEVICE, 500),
      c(bench, ORR_TIER_DEVICE, 500);
  a.put(random_bytes(random, 500));
  check(bench.api.capture_begin(bench.api.self, stream));
  bench.copy(stream, b.part(3, 400), a.part(5, 400));
  bench.copy(stream, c.whole(), b.whole());
  orr_graph* graph = nullptr;
  check(bench.api.capture_end(bench.api.self, stream, &graph));
  bench.finish(stream);
  std::string fault = first_difference(c.get(), Bytes(500));
  if (!fault.empty())
    throw Fault("device.h: \"is not run, but recorded\"", "nothing done before the first launch",
                fault);
  for (int round = 0; round < 3; ++round) {
    const Bytes from = random_bytes(random, 500);
    Bytes want = b.get();
    a.put(from);
    std::memcpy(want.data() + 3, from.data() + 5, 400);
    check(bench.api.graph_launch(bench.api.self, graph, stream));
    bench.finish(stream);
    fault = first_difference(c.get(), want);
    if (!fault.empty())
      throw Fault(contract, fmt::format("launch {}: what two recorded copies leave", round), fault);
  }
  bench.api.graph_destroy(bench.api.self, graph);
}

void recording_leaks(const Subject& subject) {
  Bench bench(subject);
  orr_stream* stream = bench.stream();
  if (!bench.records(stream)) throw Skip("it records nothing, which is optional");
  Room a(bench, ORR_TIER_DEVICE, 500), b(bench, ORR_TIER_DEVICE, 500);
  const std::string grown = growth([&] {
    orr_graph* graph = nullptr;
    check(bench.api.capture_begin(bench.api.self, stream));
    bench.copy(stream, b.whole(), a.whole());
    check(bench.api.capture_end(bench.api.self, stream, &graph));
    check(bench.api.graph_launch(bench.api.self, graph, stream));
    bench.finish(stream);
    bench.api.graph_destroy(bench.api.self, graph);
  });
  if (!grown.empty())
    throw Fault("device.h: graph_destroy", "graphs that leave nothing", "each keeps " + grown);
}

}  // namespace

std::vector<Test> device_order_tests() {
  return {{"device.order", 60, order},         {"device.waits", 60, waits},
          {"device.events", 60, events},       {"device.deadline", 60, deadline},
          {"device.recording", 30, recording}, {"device.recording_leaks", 60, recording_leaks}};
}

}  // namespace orrery::judge
