// SPDX-License-Identifier: Apache-2.0
#include "lower/kernels/row_places.h"

#include <algorithm>
#include <numeric>

namespace orrery {

const char* category_of(const State& state) {
  if (state.role == Role::param) return "parameter";
  return state.copy_of ? "compute copy" : "state";
}

RowPlaces::RowPlaces(RankPlan& plan, Launcher& launcher, const std::vector<int>& last_read)
    : plan_(plan), launcher_(launcher), last_read_(last_read) {
  for (size_t r = 0; r < plan_.local.flat_buffers.size(); ++r)
    for (auto& s : row(r).states) row_of_[s.get()] = r;
  const std::vector<Value>& values = plan_.local.program.values();
  for (size_t v = 0; v < values.size(); ++v)
    if (values[v].state) old_[values[v].state.get()] = static_cast<ValueId>(v);
  storages_.assign(plan_.local.flat_buffers.size(), kNone);
}

Place RowPlaces::place(const State* s, Strided layout) {
  const size_t r = row_of_.at(s);
  if (storages_[r] == kNone) {
    storages_[r] = launcher_.new_storage(row(r).bytes, category_of(*row(r).states.front()));
    Storage& storage = plan_.storages.back();
    storage.region = Region::state, storage.state = row(r).states.front();
  }
  const auto same = [&](auto& other) { return other.get() == s; };
  const auto i = std::find_if(row(r).states.begin(), row(r).states.end(), same);
  return {storages_[r], row(r).offsets[static_cast<size_t>(i - row(r).states.begin())],
          std::move(layout)};
}

// Whether the op may write these bytes of a row: no later op reads the old values there, and the op
// itself does not, unless it works elementwise.
bool RowPlaces::may_write(OpId op, size_t r, uint64_t begin, uint64_t end) const {
  if (op == kNone) return false;
  const bool elementwise = plan_.local.program.ops()[static_cast<size_t>(op)].kind == "pointwise";
  for (size_t i = 0; i < row(r).states.size(); ++i) {
    const uint64_t next = i + 1 < row(r).states.size() ? row(r).offsets[i + 1] : row(r).bytes;
    const auto old = old_.find(row(r).states[i].get());
    if (row(r).offsets[i] >= end || next <= begin || old == old_.end()) continue;
    const int last = last_read_[static_cast<size_t>(old->second)];
    if (last > op || (last == op && !elementwise)) return false;
  }
  return true;
}

std::optional<Place> RowPlaces::place_in_row(OpId gather) const {
  const Program& p = plan_.local.program;
  const auto maker = [&](ValueId v) { return p.value(v).producer; };
  const auto op_of = [&](OpId op) -> const Op& { return p.ops()[static_cast<size_t>(op)]; };
  const Op& op = op_of(gather);
  size_t r = 0;
  while (r < storages_.size() && op.exchange().row != row(r).states.front()->name) ++r;
  if (r == storages_.size() || storages_[r] == kNone || p.type(op.out[0]).bytes() != row(r).bytes ||
      !may_write(gather, r, 0, row(r).bytes))
    return std::nullopt;
  const Dims counts = attr_ints(op.attrs, "counts");
  const int64_t before =
      std::accumulate(counts.begin(), counts.begin() + attr_int(op.attrs, "me", 0), int64_t{0});
  const Place own{
      storages_[r], static_cast<uint64_t>(before * orr_dtype_bytes(p.type(op.out[0]).dtype)), {}};
  std::vector<ValueId> parts = op.in;
  if (!parts.empty() && maker(parts[0]) != kNone && op_of(maker(parts[0])).kind == "concat")
    parts = op_of(maker(parts[0])).in;
  uint64_t at = own.offset;
  for (ValueId part : parts) {
    OpId writer = maker(part);  // or the maker of the value that `part` is a view of
    while (writer != kNone && op_of(writer).kind == "reshape") writer = maker(op_of(writer).in[0]);
    if (!may_write(writer, r, at, at + p.type(part).bytes())) return std::nullopt;
    at += p.type(part).bytes();
  }
  return own;
}

}  // namespace orrery
