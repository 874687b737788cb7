// SPDX-License-Identifier: Apache-2.0
#include "merges.h"

#include <compare>
#include <functional>
#include <queue>

namespace data {
namespace {

constexpr int32_t kGone = -1;
constexpr size_t kNone = SIZE_MAX;

// Two neighbours that can be merged, if they are still there when their turn comes.
struct Candidate {
  size_t rank, at;
  int32_t left, right, made;
  auto operator<=>(const Candidate&) const = default;
};

}  // namespace

void Merges::merge(std::vector<int32_t>& ids) const {
  std::vector<size_t> before(ids.size()), behind(ids.size());  // the neighbours that are left
  for (size_t i = 0; i < ids.size(); ++i)
    before[i] = i ? i - 1 : kNone, behind[i] = i + 1 < ids.size() ? i + 1 : kNone;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto offer = [&](size_t at) {
    if (at == kNone || behind[at] == kNone) return;
    const int32_t left = ids[at], right = ids[behind[at]];
    if (const auto found = by_pair_.find(key(left, right)); found != by_pair_.end())
      queue.push({found->second.rank, at, left, right, found->second.made});
  };
  for (size_t i = 0; i < ids.size(); ++i) offer(i);
  while (!queue.empty()) {
    const auto [rank, at, left, right, made] = queue.top();
    queue.pop();
    const size_t next = behind[at];
    if (ids[at] != left || next == kNone || ids[next] != right) continue;  // merged since
    ids[at] = made, ids[next] = kGone;
    behind[at] = behind[next];
    if (behind[at] != kNone) before[behind[at]] = at;
    offer(before[at]), offer(at);
  }
  std::erase(ids, kGone);
}

}  // namespace data
