// SPDX-License-Identifier: Apache-2.0
//
// See winograd_plan.h.
#include "winograd_plan.h"

#include <orrery/sdk/plugin.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernel.h"

namespace orr_cpu {
namespace {

constexpr int64_t kLine = 16;              // floats
constexpr int64_t kWidest = 32;            // columns of the widest micro-tile
constexpr int64_t kRows = 28;              // of two micro-tiles
constexpr int64_t kFewTiles = 128;         // also those of a chunk of a gradient
constexpr int64_t kLeastRows = 128;        // below, the transform of the weights takes longer
constexpr int64_t kBlockFloats = 1 << 17;  // of the L2 cache, for the windows of a task
constexpr int64_t kMostShared = int64_t{1} << 24;  // floats of transformed weights

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t odd_lines(int64_t floats) { return ceil_div(floats, kLine) / 2 * 2 * kLine + kLine; }

// The images whose windows the tensor is, [1, N, H, W, 3, 3 * channels].
std::optional<Images> images_of(const orr_tensor& t) {
  if (t.rank != 6 || t.dims[0] != 1 || t.dims[4] != 3 || t.dims[5] % 3) return std::nullopt;
  const Images i{t.dims[1], t.dims[2], t.dims[3], t.dims[5] / 3, t.strides[1], t.strides[2]};
  const bool one_by_one = t.strides[3] == i.channels && t.strides[4] == t.strides[2];
  if (!one_by_one || t.strides[5] != 1 || i.channels % kLine) return std::nullopt;
  return i;
}

std::optional<Images> images_of(const orr_op& op) {
  if (const std::optional<Images> a = images_of(op.in[0])) return a;
  return images_of(op.in[1]);
}

// Leaves whose sums are one node: these, too, may be added in any order.
bool is_one_node(const orr_op& op) {
  const int64_t first = attr_int(op, "leaf_lo", 0), count = attr_int(op, "leaf_n", 1);
  return orr_tree_nodes(first, first + count, attr_int(op, "leaf_total", 1)) == 1;
}

}  // namespace

WinogradPlan::WinogradPlan(const orr_op& op, int32_t workers)
    : images(*images_of(op)), gradient(op.in[1].rank == 6), slots(workers) {
  other = gradient ? op.out[0].dims[1] : op.out[0].dims[2];
  across = ceil_div(images.width, kWinogradTile), down = ceil_div(images.height, kWinogradTile);
  tiles = images.count * across * down;
  few = tiles <= kFewTiles;
  window_row = images.channels + kLine, other_row = other + kLine;
  gradient ? for_gradient() : for_results();
}

void WinogradPlan::for_results() {
  const int64_t whole = std::max<int64_t>(1, kBlockFloats / (kWinogradPoints * window_row) / kRows);
  blocks = few ? 1 : ceil_div(tiles, whole * kRows);
  if (blocks > slots) blocks = ceil_div(blocks, slots) * slots;
  block = ceil_div(tiles, blocks), blocks = ceil_div(tiles, block);
  splits = std::min(ceil_div(slots, blocks), ceil_div(other, kWidest));
  window_point = odd_lines(block * window_row);
  sums_row = kWidest, sums_point = odd_lines(block * sums_row);
  const int64_t columns = ceil_div(other, kWidest) * kWidest;
  other_point = odd_lines(few ? kFewChannels * kWidest : images.channels * columns);
  const int64_t windows = kWinogradPoints * window_point, weights = kWinogradPoints * other_point;
  shared = few ? windows : weights;
  slot_floats = (few ? weights : windows) + kWinogradPoints * sums_point;
}

void WinogradPlan::for_gradient() {
  chunk = std::min(tiles, kFewTiles);
  window_point = odd_lines(chunk * window_row), other_point = odd_lines(chunk * other_row);
  sums_row = few ? kWidest : window_row;
  sums_point = odd_lines((few ? kFewRows : other) * sums_row);
  const int64_t sums = kWinogradPoints * sums_point;
  shared = kWinogradPoints * (window_point + other_point) + (few ? 0 : sums);
  slot_floats = few ? sums : 0;
}

uint64_t WinogradPlan::workspace() const {
  return uint64_t(shared + slots * slot_floats) * sizeof(float) + 64;
}

bool use_winograd(const orr_op& op) {
  const orr_tensor &a = op.in[0], &b = op.in[1], &y = op.out[0];
  if (a.dtype != ORR_F32 || y.dtype != ORR_F32 ||
      std::strcmp(attr_text(op, "numerics", ""), "fast"))
    return false;
  const std::optional<Images> found = images_of(op);
  if (!found || !is_one_node(op) || y.rank != 3 || y.strides[2] != 1) return false;
  const bool gradient = b.rank == 6;
  const orr_tensor& other = gradient ? a : b;
  const int64_t columns = gradient ? y.dims[1] : y.dims[2];
  if (other.rank != 3 || (gradient ? a.strides[1] != 1 : b.strides[1] != 1 && b.strides[2] != 1))
    return false;
  return columns % kLine == 0 && columns * found->channels * kWinogradPoints <= kMostShared &&
         found->count * found->height * found->width >= kLeastRows;
}

}  // namespace orr_cpu
