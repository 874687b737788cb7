// SPDX-License-Identifier: Apache-2.0
#include "run/mirror.h"

namespace orrery {
namespace {

// Whether the value is an input: neither a state nor computed.
bool is_given(const RankPlan& plan, ValueId v) {
  const Place& at = plan.places[static_cast<size_t>(v)];
  if (at.storage == kNone || plan.local.program.value(v).producer != kNone) return false;
  const Storage& s = plan.storage(at.storage);
  return s.region == Region::arena && s.category == "input" && s.bytes && !s.alive.empty();
}

uint64_t aligned(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

constexpr uint64_t kLine = 64;

}  // namespace

Mirror::Mirror(const RankPlan& plan, const Device& device, const Places& place) {
  add_inputs(plan, place);
  add_outputs(plan, place);
  memory_ = device.pinned(bytes_, "memory for a program's inputs");
  for (auto* copies : {&in_, &out_})
    for (Copy& c : *copies) c.here.memory = memory_.get();
}

uint64_t Mirror::room(uint64_t bytes) {
  const uint64_t at = aligned(bytes_, kLine);
  bytes_ = at + bytes;
  return at;
}

// Storages that follow one another in the arena are copied together, with the gaps that alignment
// leaves.
void Mirror::add_inputs(const RankPlan& plan, const Places& place) {
  std::map<uint64_t, std::vector<ValueId>> by_offset;  // the offset of their storage
  for (size_t v = 0; v < plan.places.size(); ++v)
    if (is_given(plan, static_cast<ValueId>(v)))
      by_offset[plan.storage(plan.places[v].storage).offset].push_back(static_cast<ValueId>(v));
  for (auto& [offset, values] : by_offset) {
    const uint64_t whole =
        plan.storage(plan.places[static_cast<size_t>(values.front())].storage).whole();
    if (in_.empty() ||
        offset > aligned(in_.back().there.offset + in_.back().there.bytes, plan.alignment)) {
      orr_buffer there = place(values.front());
      there.offset = offset, there.bytes = 0;
      in_.push_back({{nullptr, room(0), 0}, there});
    }
    Copy& c = in_.back();
    const uint64_t inside = offset - c.there.offset;
    for (ValueId v : values)
      at_[v] = c.here.offset + inside + plan.places[static_cast<size_t>(v)].offset;
    c.here.bytes = c.there.bytes = inside + whole;
    bytes_ = c.here.offset + c.here.bytes;
  }
}

void Mirror::add_outputs(const RankPlan& plan, const Places& place) {
  for (auto& [name, v] : plan.local.program.outputs()) {
    if (at_.count(v) || plan.places[static_cast<size_t>(v)].storage == kNone) continue;
    orr_buffer there = place(v);
    there.bytes = plan.local.program.type(v).bytes();
    at_[v] = room(there.bytes);
    if (there.bytes) out_.push_back({{nullptr, at_[v], there.bytes}, there});
  }
}

std::byte* Mirror::address(ValueId v) const {
  auto at = at_.find(v);
  return at == at_.end() ? nullptr : static_cast<std::byte*>(memory_->host) + at->second;
}

void Mirror::copy_in(const Stream& stream) const {
  for (const Copy& c : in_) stream.copy(c.there, c.here);
}

void Mirror::copy_out(const Stream& stream) const {
  for (const Copy& c : out_) stream.copy(c.here, c.there);
}

}  // namespace orrery
