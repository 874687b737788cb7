// SPDX-License-Identifier: Apache-2.0
#include "lower/schedule/first_fit.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr size_t kMost = 128;  // storages of a group

}  // namespace

FirstFit::Group FirstFit::group_of(std::vector<Placed> placed) {
  Group g;
  g.placed = std::move(placed);
  for (const Placed& one : g.placed) {
    if (&one != &g.placed.front() && one.offset > g.end)
      g.hole = std::max(g.hole, one.offset - g.end);
    g.end = std::max(g.end, one.end);
    g.span = {std::min(g.span.first, one.span.first), std::max(g.span.second, one.span.second)};
    const Span alive = one.once ? one.span : Span{INT_MAX, INT_MIN};
    g.common = {std::max(g.common.first, alive.first), std::min(g.common.second, alive.second)};
  }
  return g;
}

// Moves `offset` behind those of the group that are in the way. Returns whether there is room for
// the bytes before the group's end.
bool FirstFit::climb(const Group& group, const Placed& mine, uint64_t bytes,
                     uint64_t& offset) const {
  if (group.end <= offset || !meet(group.span, mine.span)) return false;
  if (mine.once && bytes > group.hole && meet(group.common, mine.span)) {
    offset = group.end;
    return false;
  }
  for (const Placed& other : group.placed) {
    if (offset + bytes <= other.offset) return true;
    if (offset < other.end && meet(mine.span, other.span) &&
        ((mine.once && other.once) || other.storage->meets(*mine.storage)))
      offset = other.end;
  }
  return false;
}

void FirstFit::insert(const Placed& mine) {
  const auto after = [](const Placed& a, const auto& b) { return a.offset < b.offset; };
  auto at =
      std::upper_bound(groups_.begin(), groups_.end(), mine,
                       [&](const Placed& a, const Group& b) { return after(a, b.placed[0]); });
  if (groups_.empty()) at = groups_.insert(at, Group{});
  if (at != groups_.begin()) --at;
  std::vector<Placed> all = std::move(at->placed);
  all.insert(std::upper_bound(all.begin(), all.end(), mine, after), mine);
  const auto half = all.begin() + (all.size() > kMost ? kMost / 2 : all.size());
  const std::vector<Placed> rest(half, all.end());
  all.erase(half, all.end());
  *at = group_of(std::move(all));
  if (!rest.empty()) groups_.insert(at + 1, group_of(rest));
}

void FirstFit::place(Storage& s) {
  Span span{0, -1};
  for (auto& [first, last] : s.alive) span = {s.alive.front().first, std::max(span.second, last)};
  Placed mine{0, 0, span, s.alive.size() < 2, &s};
  const uint64_t bytes = s.whole();
  for (const Group& group : groups_)
    if (mine.offset + bytes <= group.placed.front().offset ||
        climb(group, mine, bytes, mine.offset))
      break;
  s.offset = mine.offset;
  mine.end = (mine.offset + bytes + alignment_ - 1) / alignment_ * alignment_;
  bytes_ = std::max(bytes_, mine.end);
  insert(mine);
}

}  // namespace orrery
