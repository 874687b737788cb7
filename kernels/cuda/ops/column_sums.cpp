// SPDX-License-Identifier: Apache-2.0
#include "column_sums.h"

#include <algorithm>

namespace orr_cuda {
namespace {

// So many blocks of rows may one block of threads add: eight neighbours are then side by side.
constexpr int64_t kTogether = pointwise_block / 8;

int64_t blocks_of_rows(int64_t length) {
  return std::max(int64_t{1}, divide_up(length, int64_t{ORR_SUM_ROWS}));
}

}  // namespace

FoldPlan column_plan(const orr_op& op, int64_t outer, int64_t length, int64_t columns, int arrays) {
  FoldPlan plan(op, outer, length, columns, arrays, ORR_SUM_ROWS);
  if (plan.entries <= kTogether) plan.entries = 1;
  return plan;
}

int32_t Terms::push(int32_t fn, int32_t dtype, int32_t a, int32_t b) {
  instrs_.push_back({fn, dtype, a, b, 0, 0, 0});
  return int32_t(instrs_.size()) - 1;
}

int32_t Terms::input(const orr_tensor& x) {
  in_.push_back(x);
  return push(ORR_FN_CAST, push(ORR_FN_INPUT, x.dtype, int32_t(in_.size()) - 1, 0), 0);
}

orr_op Terms::op(const std::vector<int32_t>& stored) {
  stored_ = stored, outs_.assign(stored.size(), out_);
  const auto n = int32_t(stored.size());
  expr_ = {sizeof expr_, int32_t(instrs_.size()), n, 0, instrs_.data(), stored_.data()};
  return {sizeof(orr_op), int32_t(in_.size()), n,       0,      "pointwise",
          in_.data(),     outs_.data(),        nullptr, &expr_, "",
          nullptr};
}

orr_tensor accumulators(orr_tensor x) {
  x.dtype = accumulator(x.dtype);
  return x;
}

ColumnSums::ColumnSums(const orr_op& op, const FoldPlan& plan, int32_t dtype, int32_t fn,
                       bool rounded, const Results& results)
    : walk_(op, plan.columns),
      plan_(plan),
      blocks_(blocks_of_rows(plan.length)),
      bytes_(orr_dtype_bytes(accumulator(dtype))),
      together_(blocks_ > plan.entries),
      fold_(plan, dtype, fn, rounded),
      inputs_(size_t(op.n_in)),
      stored_(results.given ? size_t(op.n_out) : 0) {
  if (plan.segments * plan.columns == 0) return;
  const uint64_t stored = results.given ? ~results.unread : 0;
  const ColumnSumsText text{plan.columns, plan.arrays, dtype, fn, stored, together_};
  functions_ = &Generated::of(sums_source(op, walk_, text), "sums", walk_.vector > 1);
  if (plan.direct() && plan.segments == 1 && walk_.elements <= kSmall)
    functions_->add_op([&] { return sums_table_source(op, walk_, text); });
  else
    functions_->add_op({});
  note_tensors(rounded ? dtype : accumulator(dtype));
}

// What a launch reads and writes, the sums of this dtype at the end.
void ColumnSums::note_tensors(int32_t dtype) {
  const size_t tensors = walk_.strides.size();
  now_.inputs = inputs_, now_.addresses.resize(tensors + kFoldArrays);
  for (size_t t = 0; t < tensors; ++t)
    now_.reaches.push_back(t < inputs_ + stored_ ? walk_.reach(t) : Reach(0));
  const auto bytes = uint64_t(plan_.segments * plan_.columns * orr_dtype_bytes(dtype));
  for (int i = 0; i < kFoldArrays; ++i) now_.reaches.emplace_back(i < plan_.arrays ? bytes : 0);
}

ColumnSums::~ColumnSums() {
  if (functions_) --functions_->ops;
}

ColumnSums::Shape ColumnSums::shape(int64_t width) const {
  const int64_t packets = plan_.columns / width;
  if (!together_) {
    const int64_t threads = plan_.segments * blocks_ * packets;
    return {packets, unsigned(divide_up(threads, pointwise_block)), pointwise_block};
  }
  const int64_t tiles = divide_up(packets, pointwise_block / blocks_);
  const int64_t side = divide_up(packets, tiles);
  return {side, unsigned(plan_.segments * tiles), unsigned(side * blocks_)};
}

void ColumnSums::launch(CUstream stream, const Buffers& b) {
  if (!functions_) return;
  std::fill(now_.addresses.begin(), now_.addresses.end(), 0);
  std::copy_n(b.in, inputs_, now_.addresses.begin());
  std::copy_n(b.out, stored_, now_.addresses.begin() + long(inputs_));
  const bool vector = functions_->vector && walk_.aligned(now_.addresses);
  const Buffers sums{b.in, b.out + stored_, b.workspace};
  const FoldOutput to = fold_.first(sums);
  const int64_t width = vector ? walk_.vector : 1;
  const Shape by = shape(width);
  SumRows rows{to,         uint64_t(plan_.segments), uint64_t(plan_.length), uint64_t(blocks_),
               to.rounded, uint64_t(by.side),        uint64_t(blocks_),      0};
  for (int i = 0; i < plan_.arrays; ++i)
    now_.addresses[walk_.strides.size() + size_t(i)] = CUdeviceptr(to.array[i]);
  now_.numbers = {rows.segments, rows.length, rows.entries, rows.rounded,
                  rows.side,     rows.teams,  rows.repeats};
  now_.blocks = by.blocks, now_.threads = by.threads;
  now_.shared = together_ ? unsigned(by.threads * width * bytes_) : 0;
  void* arguments[] = {now_.addresses.data(), &rows};
  functions_->enqueue(stream, now_, vector, arguments);
  fold_.rest(stream, sums);
}

}  // namespace orr_cuda
