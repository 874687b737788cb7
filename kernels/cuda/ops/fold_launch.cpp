// SPDX-License-Identifier: Apache-2.0
#include "fold_launch.h"

#include <algorithm>

namespace orr_cuda {
namespace {

// Longer ones are left to a further stage, which has more blocks.
constexpr int32_t kLongestRun = 128;

}  // namespace

int fill_nodes(const Leaves& leaves, LeafNode* nodes) {
  int count = 0;
  for (int64_t at = leaves.lo;;) {
    const int64_t first = at - leaves.lo;
    const int64_t n = orr_tree_node(&at, leaves.lo + leaves.n, leaves.total);
    if (n == 0) return count;
    nodes[count++] = {int32_t(first), int32_t(n)};
  }
}

FoldPlan::FoldPlan(const orr_op& op, int64_t outer, int64_t whole, int64_t columns, int arrays,
                   int64_t block)
    : leaves(op),
      segments(outer * leaves.n),
      length(whole / leaves.n),
      columns(columns),
      entries(std::max(int64_t{1}, divide_up(length, block))),
      arrays(arrays) {}

// Every stage writes elsewhere than it reads.
uint64_t FoldPlan::workspace() const {
  int64_t kept = leaves.n > 1 ? 1 : 0;  // entries of a column: for the leaves, and for each stage
  for (int64_t n = entries; n > 1; n = after(n)) kept += n;
  return uint64_t(segments * columns * kAccumulator * arrays * kept);
}

int32_t FoldPlan::run(int64_t n) const {
  int32_t run = 8;
  while (run < kLongestRun && run * rows_of_threads() < n) run *= 2;
  return run;
}

int64_t FoldPlan::after(int64_t n) const { return divide_up(n, run(n) * rows_of_threads()); }

FoldLaunch::FoldLaunch(const FoldPlan& plan, int32_t dtype, int32_t fn, bool rounded)
    : plan_(plan),
      fn_(fn == kFoldSumOfSquares ? kFoldSum : fn),
      rounded_(rounded),
      fold_(find_function(std::string("fold_") + number_name(dtype))),
      tree_(find_function(std::string("leaf_tree_") + number_name(dtype))) {
  nodes_.nodes = fill_nodes(plan.leaves, nodes_.node);
  nodes_.columns = plan.columns;
}

FoldOutput FoldLaunch::outputs(const Buffers& b) const {
  FoldOutput out{{}, rounded_};
  for (int i = 0; i < plan_.arrays; ++i) out.array[i] = pointer(b.out[i]);
  return out;
}

// The arrays one after another, each for n entries.
FoldOutput FoldLaunch::work(void* at, int64_t n) const {
  FoldOutput out{{}, false};
  for (int i = 0; i < plan_.arrays; ++i)
    out.array[i] = static_cast<char*>(at) + i * plan_.segments * plan_.columns * kAccumulator * n;
  return out;
}

FoldOutput FoldLaunch::first(const Buffers& b) const {
  return plan_.direct() ? outputs(b) : work(pointer(b.workspace), plan_.entries);
}

void FoldLaunch::rest(CUstream stream, const Buffers& b) const {
  FoldOutput at = first(b);
  const int64_t tiles = divide_up(plan_.columns, plan_.columns == 1 ? 1 : kFoldColumns);
  for (int64_t n = plan_.entries; n > 1;) {
    const int64_t next = plan_.after(n), bytes = plan_.segments * plan_.columns * kAccumulator;
    char* after = static_cast<char*>(at.array[0]) + bytes * n * plan_.arrays;
    FoldArgs args{at, {}, plan_.segments, n, plan_.columns, plan_.run(n), fn_};
    at = args.out = next == 1 && plan_.leaves.n == 1 ? outputs(b) : work(after, next);
    enqueue(stream, fold_, {unsigned(plan_.segments * next * tiles), unsigned(plan_.arrays)},
            {kFoldThreads}, 0, args);
    n = next;
  }
  if (plan_.leaves.n == 1) return;
  LeafTreeArgs args = nodes_;
  args.in = at, args.out = outputs(b);
  const Extent grid{blocks_of(plan_.columns).x, unsigned(plan_.arrays)};
  enqueue(stream, tree_, grid, {kFoldThreads}, 0, args);
}

}  // namespace orr_cuda
