// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint_shard.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "run/replicas.h"
#include "run/states.h"

namespace orrery {
namespace {

void check_finite(const State& s, const Box& box, const HostTensor& value, int64_t step) {
  const std::string where = not_finite(value, s.role != Role::param || s.frozen, box.offset);
  if (!where.empty())
    fail(ORR_FAILED,
         "after step {} '{}' holds {}: it is not saved; load an earlier checkpoint, lower the "
         "learning rate or clip gradients",
         step, s.name, where);
}

// The elements of a box of the part that this rank holds.
HostTensor taken(const State& s, const Box& box) {
  const Type type{s.type.dtype, box.shape};
  std::vector<std::byte> part;
  const int64_t size = orr_dtype_bytes(type.dtype);
  const std::byte* from = part_in_memory(s, part) + box.at * size;
  if (box.strides == row_major(box.shape))  // not zeroed first
    return {type, std::make_shared<std::vector<std::byte>>(from, from + type.bytes())};
  HostTensor value = HostTensor::make(type);
  copy_box(box.shape, size, from, box.strides, value.bytes->data(), row_major(box.shape));
  return value;
}

// The ranks that hold the same part of a coordinate's value, for each part. If some ranks hold the
// whole value, that is the only one.
std::vector<std::pair<Part, std::vector<size_t>>> holders(const State& s, size_t ranks,
                                                          int32_t coordinate) {
  std::vector<std::pair<Part, std::vector<size_t>>> found;
  for (size_t r = 0; r < ranks; ++r) {
    if (!s.coordinate_of.empty() && s.coordinate_of[r] != coordinate) continue;
    const Part part = s.parts.empty() ? Part{} : s.parts[r];
    if (part.type(s.type).elements() == 0) continue;
    auto same = std::find_if(found.begin(), found.end(), [&](auto& f) { return f.first == part; });
    if (same == found.end()) same = found.insert(found.end(), {part, {}});
    same->second.push_back(r);
  }
  for (auto& one : found)
    if (one.first.is_whole()) return {one};
  return found;
}

}  // namespace

CheckpointShard::CheckpointShard(SaveContents contents, bool balanced, bool copies)
    : contents_(std::move(contents)),
      bytes_of_(static_cast<size_t>(contents_.ranks)),
      me_(contents_.ranks == 1 ? 0 : static_cast<size_t>(world_info().rank)),
      balanced_(balanced),
      copies_(copies) {}

// Whether this rank, one of the holders, writes a box of these bytes.
bool CheckpointShard::is_mine(const std::vector<size_t>& holders, uint64_t bytes) {
  if (!balanced_) return holders.front() == me_;
  const size_t least = *std::min_element(holders.begin(), holders.end(), [&](size_t a, size_t b) {
    return std::pair(bytes_of_[a], a) < std::pair(bytes_of_[b], b);
  });
  bytes_of_[least] += bytes;
  return least == me_;
}

void CheckpointShard::add(const std::string& tensor, const std::shared_ptr<State>& s,
                          int32_t coordinate) {
  contents_.tensors[tensor] = s->type;
  for (auto& [part, ranks] : holders(*s, bytes_of_.size(), coordinate))
    for (const Box& box : boxes_of(part, s->type))
      if (is_mine(ranks, Type{s->type.dtype, box.shape}.bytes())) add_box(tensor, s, box);
}

void CheckpointShard::add_box(const std::string& tensor, const std::shared_ptr<State>& s,
                              const Box& box) {
  const Type type{s->type.dtype, box.shape};
  HostTensor value = taken(*s, box);
  check_finite(*s, box, value, contents_.facts.step);
  if (copies_) {
    copied_ += type.bytes();
    contents_.pieces.push_back({tensor, box.offset, value});
  } else {
    contents_.pieces.push_back({tensor, box.offset, {type, [s, box] { return taken(*s, box); }}});
  }
}

void CheckpointShard::add(const std::string& tensor,
                          const std::shared_ptr<const Checkpoint>& from) {
  const Type& type = contents_.tensors[tensor] = from->tensors().at(tensor);
  std::vector<size_t> everyone(bytes_of_.size());
  std::iota(everyone.begin(), everyone.end(), size_t{0});
  if (type.elements() == 0 || !is_mine(everyone, type.bytes())) return;
  contents_.pieces.push_back(
      {tensor, Dims(type.dims.size(), 0), {type, [from, tensor] { return from->read(tensor); }}});
}

}  // namespace orrery
