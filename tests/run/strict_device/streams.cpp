// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <orrery/sdk/plugin.hpp>

#include "machine.h"

namespace strict {

void Machine::must_not_capture(const char* what) const {
  if (captures_ > 0 && capturing_ == std::this_thread::get_id())
    broken(std::string(what) + " while a stream is captured");
}

orr_stream* Machine::make_stream() {
  must_be_open();
  must_not_capture("stream_create");
  return streams_.emplace_back(std::make_unique<orr_stream>()).get();
}

void Machine::destroy(orr_stream* stream) {
  if (stream->capture) fatal("stream_destroy while it is captured");
  for (const Item& i : stream->queue)
    for (uint64_t h : i.memories) --allocations_.at(h).pending;
  std::erase_if(streams_, [&](auto& s) { return s.get() == stream; });
}

void Machine::enqueue(orr_stream* stream, Item item) {
  if (!stream) broken("work on no stream");
  if (item.record) item.record->on = stream;
  if (stream->capture) {
    if (item.record || item.wait) broken("an event in a capture");
    ++counts.recorded;
    stream->capture->items.push_back(std::move(item));
    return;
  }
  if (item.record) item.times = ++item.record->recorded;
  if (item.wait && !(item.times = item.wait->recorded))
    broken("stream_wait for an event that was never recorded");
  for (uint64_t h : item.memories) {
    const auto at = allocations_.find(h);
    if (at == allocations_.end()) broken("use of memory that was freed");
    ++at->second.pending;
  }
  stream->queue.push_back(std::move(item));
}

void Machine::begin(orr_stream* stream) {
  if (captures_ > 0) broken("two captures at once");
  capturing_ = std::this_thread::get_id();
  stream->capture = new orr_graph;
  ++captures_;
}

orr_graph* Machine::end(orr_stream* stream) {
  if (!stream->capture) broken("capture_end without capture_begin");
  --captures_;
  return std::exchange(stream->capture, nullptr);
}

void Machine::forget(const orr_event* event) {
  for (auto& s : streams_)
    for (Item& i : s->queue) {
      if (i.record == event) i.record = nullptr;
      if (i.wait == event) i.wait = nullptr;
    }
}

bool Machine::can_run(const orr_stream& s) const {
  if (s.queue.empty()) return false;
  const Item& head = s.queue.front();
  return !head.wait || head.wait->done >= head.times;
}

// Follows waits to the stream whose head must run for the event.
orr_stream* Machine::needed(const orr_event& wanted) const {
  const orr_event* event = &wanted;
  for (size_t hops = 0; hops <= streams_.size(); ++hops) {
    orr_stream* s = event->on;
    if (!s || s->queue.empty()) return nullptr;
    if (can_run(*s)) return s;
    event = s->queue.front().wait;
  }
  return nullptr;
}

// By turns: what must run and nothing else, all else first, anything.
orr_stream* Machine::choose(const orr_event& wanted) {
  orr_stream* must = needed(wanted);
  if (counts.syncs % 3 == 0) return must;
  std::vector<orr_stream*> others;
  for (auto& s : streams_)
    if (can_run(*s) && (s.get() != must || counts.syncs % 3 == 2)) others.push_back(s.get());
  if (others.empty()) return must;
  random_ = random_ * 6364136223846793005ull + 1442695040888963407ull;
  return others[(random_ >> 33) % others.size()];
}

void Machine::step(orr_stream& s) {
  Item item = std::move(s.queue.front());
  s.queue.pop_front();
  try {
    if (item.run) item.run();
  } catch (const orr::Error& e) {
    if (s.error.empty()) s.error_code = e.code, s.error = e.what();
  }
  for (uint64_t h : item.memories) --allocations_.at(h).pending;
  if (item.record) item.record->done = item.times;
}

void Machine::sync(const orr_event& event) {
  must_not_capture("event_sync");
  if (!event.recorded) broken("event_sync of an event that was never recorded");
  const uint64_t times = event.recorded;
  for (++counts.syncs; event.done < times;) {
    orr_stream* next = choose(event);
    if (!next) broken("event_sync of an event that nothing will end");
    step(*next);
  }
  if (event.on->error.empty()) return;
  throw orr::Error(event.on->error_code, std::exchange(event.on->error, ""));
}

}  // namespace strict
