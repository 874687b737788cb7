// SPDX-License-Identifier: Apache-2.0
#include "fold_launch.h"

#include <algorithm>

namespace orr_cuda {
namespace {

constexpr int64_t kAccumulator = 8;  // bytes reserved for each, whatever its type

int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

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
  if (direct()) return 0;
  uint64_t total = 0;
  int64_t n = entries;
  for (;; n = divide_up(n, 64)) {
    if (n == 1 && leaves.n == 1) break;
    total += uint64_t(segments * n * columns * kAccumulator * arrays);
    if (n == 1) break;
  }
  return total;
}

Extent FoldPlan::column_grid(int64_t groups) const {
  return {unsigned(segments * groups * divide_up(columns, kFoldColumns))};
}

FoldLaunch::FoldLaunch(const FoldPlan& plan, int32_t dtype, int32_t fn, bool rounded)
    : plan_(plan),
      fn_(fn),
      rounded_(rounded),
      fold_(find_function(std::string("fold_") + number_name(dtype))),
      tree_(find_function(std::string("leaf_tree_") + number_name(dtype))) {
  nodes_.nodes = fill_nodes(plan.leaves, nodes_.node);
  nodes_.columns = plan.columns;
}

FoldOutput FoldLaunch::outputs(const Buffers& b) const {
  return {{pointer(b.out[0]), plan_.arrays > 1 ? pointer(b.out[1]) : nullptr}, rounded_};
}

FoldOutput FoldLaunch::first(const Buffers& b) const {
  if (plan_.direct()) return outputs(b);
  char* work = static_cast<char*>(pointer(b.workspace));
  return {{work, work + plan_.segments * plan_.entries * plan_.columns * kAccumulator}, false};
}

void FoldLaunch::rest(CUstream stream, const Buffers& b) const {
  FoldOutput at = first(b);
  const unsigned arrays = unsigned(plan_.arrays);
  for (int64_t n = plan_.entries; n > 1;) {
    const int64_t next = divide_up(n, 64), bytes = plan_.segments * plan_.columns * kAccumulator;
    char* after = static_cast<char*>(at.array[0]) + bytes * n * plan_.arrays;
    FoldArgs args{{at.array[0], at.array[1]}, {}, plan_.segments, n, plan_.columns, fn_};
    at = next == 1 && plan_.leaves.n == 1 ? outputs(b)
                                          : FoldOutput{{after, after + bytes * next}, false};
    args.out = at;
    Extent grid = plan_.column_grid(next);
    grid.y = arrays;
    enqueue(stream, fold_, grid, {kFoldThreads}, 0, args);
    n = next;
  }
  if (plan_.leaves.n == 1) return;
  LeafTreeArgs args = nodes_;
  for (int i = 0; i < plan_.arrays; ++i) args.in[i] = at.array[i];
  args.out = outputs(b);
  Extent grid = fold_grid(plan_.columns);
  grid.y = arrays;
  enqueue(stream, tree_, grid, {kFoldThreads}, 0, args);
}

}  // namespace orr_cuda
