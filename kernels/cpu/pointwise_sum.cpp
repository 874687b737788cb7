// SPDX-License-Identifier: Apache-2.0
//
// pointwise_sum: the terms of some rows are computed into a buffer that stays in the nearest cache,
// and added to the sum of their block. Then the blocks of each leaf are added as ops.h says.
#include "leaves.h"
#include "pointwise_sum_plan.h"
#include "tasks.h"

namespace orr_cpu::ORR_ISA {

Kernel* make_pointwise(const orr_op& op);

namespace {

constexpr int64_t kTerms = 4096;     // computed at a time
constexpr int64_t kGrain = 1 << 15;  // terms that are worth a task

struct PointwiseSum : Kernel {
  explicit PointwiseSum(const orr_op& op) : plan(op), leaves(op), inputs(op.n_in) {
    const PointwiseTerms terms(op, plan);
    expression = make_pointwise(terms.op);
  }
  ~PointwiseSum() override { delete expression; }

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    void* from[pointwise::kMaxTensors];
    for (int32_t i = 0; i < inputs; ++i) from[i] = orr_buffer_host(&in[i]);
    float* blocks = aligned_scratch(work);
    const int64_t count = plan.block_count();
    const int64_t rows = smaller(plan.length, ORR_SUM_ROWS);
    parallel_ranges(count, larger(1, kGrain / larger(1, rows * plan.columns)),
                    [&](int64_t first, int64_t last) { add_blocks(from, blocks, first, last); });
    float* y = host<float>(out[0]);
    parallel_ranges(plan.outer, larger(1, 1024 / plan.columns), [&](int64_t first, int64_t last) {
      for (int64_t o = first; o < last; ++o)
        add_leaves(blocks + o * plan.leaves * plan.blocks * plan.columns, y + o * plan.columns);
    });
  }

  // The first row of a block, of all rows of all leaves.
  int64_t row_of(int64_t block) const {
    return block / plan.blocks * plan.length + block % plan.blocks * ORR_SUM_ROWS;
  }

  void add_blocks(void* const* in, float* blocks, int64_t first, int64_t last) const {
    alignas(64) float terms[kTerms];
    const int64_t begin = row_of(first) * plan.columns, end = row_of(last) * plan.columns;
    for (int64_t at = begin / pointwise::kBegin * pointwise::kBegin; at < end; at += kTerms) {
      const int64_t next = smaller(at + kTerms, end);
      // Its element `at` is the first of the buffer.
      void* out = (void*)(uintptr_t(terms) - uintptr_t(at) * sizeof(float));
      pointwise::compute(*expression, in, &out, at, next);
      add_rows(terms, at, larger(at, begin), next, blocks);
    }
  }

  // Adds terms [first, last), the buffer's beginning with term `at`, to the sums of their blocks.
  void add_rows(const float* terms, int64_t at, int64_t first, int64_t last, float* blocks) const {
    int64_t column = first % plan.columns;
    const int64_t row = first / plan.columns, leaf = row / plan.length;
    int64_t within = row % plan.length;
    float* sum = blocks + (leaf * plan.blocks + within / ORR_SUM_ROWS) * plan.columns;
    for (const float* from = terms + (first - at); first < last; column = 0) {
      const int64_t n = smaller(plan.columns - column, last - first);
      add_row(from, sum + column, n, within % ORR_SUM_ROWS == 0);
      first += n, from += n;
      if (++within == plan.length) within = 0;
      if (within % ORR_SUM_ROWS == 0) sum += plan.columns;
    }
  }

  static ORR_INLINE void add_row(const float* from, float* sum, int64_t n, bool begins) {
    if (begins)
      each_vector(0, n,
                  [&](int64_t i, auto k) { store(sum + i, splat(0.0f) + load(from + i, k), k); });
    else
      each_vector(0, n, [&](int64_t i, auto k) {
        store(sum + i, load(sum + i, k) + load(from + i, k), k);
      });
  }

  void add_leaves(const float* blocks, float* y) const {
    each_vector(0, plan.columns, [&](int64_t c, auto k) {
      each_node<float, v16f>(
          leaves,
          [&](int64_t leaf) {
            TreeSum<v16f> tree;
            for (int64_t b = 0; b < plan.blocks; ++b)
              tree.add(load(blocks + (leaf * plan.blocks + b) * plan.columns + c, k));
            return tree.total();
          },
          [&](int64_t node, v16f x) { store(y + node * plan.node + c, x, k); });
    });
  }

  PointwiseSumPlan plan;
  Leaves leaves;
  int32_t inputs;
  Kernel* expression;
};

}  // namespace

Kernel* make_pointwise_sum(const orr_op& op) { return new PointwiseSum(op); }

}  // namespace orr_cpu::ORR_ISA
