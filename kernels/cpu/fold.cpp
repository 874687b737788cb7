// SPDX-License-Identifier: Apache-2.0
//
// fold: every row of the result is made by one task, from the windows that reach it in their order.
#include "fold.h"
#include "rows.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class T>
struct Fold : Kernel {
  using V = Vec<T>;
  explicit Fold(const orr_op& op) : plan(op) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* x = host<T>(in[0]);
    T* y = host<T>(out[0]);
    const int64_t row = plan.length[2] * plan.width, rows = plan.length[0] * plan.length[1];
    parallel_ranges(plan.lead * rows, row_grain(row), [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r)
        make_row(r % rows, x + r / rows * plan.block, y + r * row);
    });
  }

  // The row of y at l0, l1, which `row` counts; x and y begin at its lead and at the row.
  void make_row(int64_t row, const T* x, T* y) const {
    const Offsets outer(plan, 0, row / plan.length[1]), inner(plan, 1, row % plan.length[1]);
    for (int64_t l = 0; l < plan.length[2]; ++l, y += plan.width) {
      const Offsets along(plan, 2, l);
      each_vector(0, plan.width, [&](int64_t c, auto n) {
        V sum = {};
        for (const int64_t* i = outer.begin; i < outer.end; ++i)
          for (const int64_t* j = inner.begin; j < inner.end; ++j)
            for (const int64_t* k = along.begin; k < along.end; ++k)
              sum = sum + load(x + c + *i + *j + *k, n);
        store(y + c, sum, n);
      });
    }
  }

  struct Offsets {
    ORR_INLINE Offsets(const FoldPlan& p, int d, int64_t l)
        : begin(p.offset[d] + p.first[d][l]), end(p.offset[d] + p.first[d][l + 1]) {}
    const int64_t *begin, *end;
  };

  FoldPlan plan;
};

}  // namespace

Kernel* make_fold(const orr_op& op) { return make_real<Fold>(op.in[0].dtype, op); }

}  // namespace orr_cpu::ORR_ISA
