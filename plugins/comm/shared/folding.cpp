// SPDX-License-Identifier: Apache-2.0
#include "folding.h"

#include <algorithm>
#include <cstring>

#include <orrery/ops.h>
#include <orrery/sdk/traffic.hpp>

namespace shared {
namespace {

constexpr int64_t block_bytes = 8 << 10;  // of one operand: a block's operands stay in the first cache

}  // namespace

Folding::Folding(const orr_coll& c, int ranks)
    : unit_(orr_dtype_bytes(c.dtype)), tree_(orr::traffic::is_tree(c.op)), first_(ranks + 1, 0) {
  fold_ = fold_for(c.dtype, tree_ ? int32_t{ORR_RED_SUM} : c.redop);
  for (int r = 0; r < ranks; ++r)
    first_[r + 1] = first_[r] + static_cast<int>(orr::traffic::nodes(c, r, ranks));
  if (tree_) plan_tree(c, ranks);
  block_in_.resize(operands());
}

int Folding::most_owned() const {
  int most = 1;
  for (size_t r = 1; r < first_.size(); ++r) most = std::max(most, first_[r] - first_[r - 1]);
  return most;
}

// Plans the sums of the node over leaves [lo, lo + width) and returns its operand number. `first` and
// `last` bound the leaves of each input.
int Folding::plan_node(int64_t lo, int64_t width, int64_t total, const std::vector<int64_t>& first,
                       const std::vector<int64_t>& last) {
  const int64_t hi = std::min(lo + width, total);
  const auto at = std::lower_bound(first.begin(), first.end(), lo) - first.begin();
  if (at < static_cast<int64_t>(first.size()) && first[at] == lo && last[at] >= hi)
    return static_cast<int>(at);
  const int left = plan_node(lo, width / 2, total, first, last);
  if (lo + width / 2 >= total) return left;
  const int right = plan_node(lo + width / 2, width / 2, total, first, last);
  sums_.push_back({left, right});
  return static_cast<int>(first.size() + sums_.size()) - 1;
}

void Folding::plan_tree(const orr_coll& c, int ranks) {
  const int64_t leaves = c.leaf_first[ranks];
  std::vector<int64_t> lo, hi;
  for (int r = 0; r < ranks; ++r)
    for (int64_t at = c.leaf_first[r]; at < c.leaf_first[r + 1];) {
      lo.push_back(at);
      orr_tree_node(&at, c.leaf_first[r + 1], leaves);
      hi.push_back(at);
    }
  int64_t width = 1;
  while (width < leaves) width *= 2;
  plan_node(0, width, leaves, lo, hi);
  scratch_.resize(sums_.size() * block_bytes);
}

void Folding::run(const std::vector<const char*>& in, const std::vector<char*>& out, int64_t n) {
  if (out.empty()) return;
  const int64_t block = block_bytes / unit_;
  const int k = operands();
  for (int64_t at = 0; at < n; at += block) {
    const int64_t m = std::min(block, n - at);
    if (tree_ && k > 1) {
      run_tree(in, out[0], at, m);
    } else if (k > 1) {
      for (int i = 0; i < k; ++i) block_in_[i] = in[i] + at * unit_;
      fold_(out[0] + at * unit_, block_in_.data(), k, m);
    } else if (out[0] != in[0]) {
      std::memmove(out[0] + at * unit_, in[0] + at * unit_, m * unit_);
    }
    for (size_t i = 1; i < out.size(); ++i)
      std::memcpy(out[i] + at * unit_, out[0] + at * unit_, m * unit_);
  }
}

void Folding::run_tree(const std::vector<const char*>& in, char* out, int64_t at, int64_t n) {
  const int inputs = operands();
  const auto operand = [&](int i) -> const void* {
    return i < inputs ? in[i] + at * unit_ : scratch_.data() + (i - inputs) * block_bytes;
  };
  for (size_t s = 0; s < sums_.size(); ++s) {
    const void* pair[] = {operand(sums_[s].a), operand(sums_[s].b)};
    char* to = s + 1 == sums_.size() ? out + at * unit_ : scratch_.data() + s * block_bytes;
    fold_(to, pair, 2, n);
  }
}

}  // namespace shared
