// SPDX-License-Identifier: Apache-2.0
#include "conformance/device_parts.h"

#include <cstring>

#include "base/error.h"
#include "conformance/loaded.h"

namespace orrery::judge {
namespace {

constexpr int64_t patience = int64_t{30} * 1000000000;

const orr_device_api& opened(const Subject& subject) {
  const orr_device_api& api = registry_with(subject).device(subject.name());
  try {
    check(api.open(api.self, 0, 1));
  } catch (const Error& e) {
    if (e.code() == ORR_UNAVAILABLE) throw Skip(fmt::format("it does not work here: {}", e.what()));
    throw;
  }
  return api;
}

}  // namespace

Bench::Bench(const Subject& subject) : api(opened(subject)) { finished_ = event(); }

orr_stream* Bench::stream() {
  orr_stream* made = nullptr;
  check(api.stream_create(api.self, &made));
  return made;
}

orr_event* Bench::event() {
  orr_event* made = nullptr;
  check(api.event_create(api.self, &made));
  return made;
}

void Bench::copy(orr_stream* stream, const orr_buffer& to, const orr_buffer& from) const {
  check(api.copy(api.self, stream, &to, &from));
}
void Bench::record(orr_event* event, orr_stream* stream) const {
  check(api.event_record(api.self, event, stream));
}
void Bench::wait(orr_stream* stream, orr_event* event) const {
  check(api.stream_wait(api.self, stream, event));
}
void Bench::sync(orr_event* event) const { check(api.event_sync(api.self, event, patience)); }

void Bench::finish(orr_stream* stream) {
  record(finished_, stream);
  sync(finished_);
}

bool Bench::records(orr_stream* stream) const {
  if (orr_status* status = api.capture_begin(api.self, stream)) {
    const bool none = host_table().error_code(status) == ORR_UNIMPLEMENTED;
    if (!none) check(status);
    host_table().error_release(status);
    return false;
  }
  orr_graph* graph = nullptr;
  check(api.capture_end(api.self, stream, &graph));
  api.graph_destroy(api.self, graph);
  return true;
}

Room::Room(Bench& bench, int32_t tier, uint64_t bytes) : bench_(bench), bytes_(bytes) {
  if (tier == ORR_TIER_PINNED || tier == ORR_TIER_DEVICE) {
    check(bench.api.allocate(bench.api.self, tier, bytes, &given_));
    memory_ = given_;
    return;
  }
  own_.resize(bytes);
  made_ = {sizeof made_, tier, bytes, own_.data(), own_.data(), "host", nullptr};
  memory_ = &made_;
}

Room::~Room() {
  if (given_) bench_.api.free(bench_.api.self, given_);
}

void Room::put(const Bytes& bytes) {
  if (memory_->host) {
    std::memcpy(memory_->host, bytes.data(), bytes.size());
    return;
  }
  Room from(bench_, ORR_TIER_HOST, bytes.size());
  from.put(bytes);
  orr_stream* stream = bench_.stream();
  bench_.copy(stream, part(0, bytes.size()), from.whole());
  bench_.finish(stream);
  bench_.api.stream_destroy(bench_.api.self, stream);
}

Bytes Room::get() {
  Bytes bytes(bytes_);
  if (memory_->host) {
    std::memcpy(bytes.data(), memory_->host, bytes_);
    return bytes;
  }
  Room to(bench_, ORR_TIER_HOST, bytes_);
  orr_stream* stream = bench_.stream();
  bench_.copy(stream, to.whole(), whole());
  bench_.finish(stream);
  bench_.api.stream_destroy(bench_.api.self, stream);
  return to.get();
}

const char* tier_name(int32_t tier) {
  static const char* const names[] = {"HOST", "COMM", "PINNED", "DEVICE"};
  return names[tier];
}

Bytes random_bytes(std::mt19937_64& random, uint64_t n) {
  Bytes bytes(n);
  for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
  return bytes;
}

std::string first_difference(const Bytes& got, const Bytes& want) {
  for (size_t i = 0; i < want.size(); ++i)
    if (got[i] != want[i])
      return fmt::format("byte {} of {} is {:#04x} and should be {:#04x}", i, want.size(), got[i],
                         want[i]);
  return "";
}

}  // namespace orrery::judge
