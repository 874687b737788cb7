// SPDX-License-Identifier: Apache-2.0
//
// reduce of integers and booleans. Results are exact in any order, so plain loops are enough.
#include "leaves.h"
#include "reduce.h"

namespace orr_cpu::ORR_ISA {
namespace {

int64_t join(ReduceFn fn, int64_t a, int64_t x) {
  switch (fn) {
    case ReduceFn::sum: return int64_t(uint64_t(a) + uint64_t(x));
    case ReduceFn::sumsq: return int64_t(uint64_t(a) + uint64_t(x) * uint64_t(x));
    case ReduceFn::max: return larger(a, x);
    default: return smaller(a, x);
  }
}

template <class T, class Y>
struct ReduceInt : Kernel {
  explicit ReduceInt(const orr_op& op)
      : fn(reduce_fn(op)),
        leaves(op),
        outer(op.in[0].dims[0]),
        length(op.in[0].dims[1]),
        inner(op.in[0].dims[2]) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer*) override {
    const T* x = host<T>(in[0]);
    Y* y = host<Y>(out[0]);
    const int64_t segment = length / leaves.n;
    const bool adds = fn == ReduceFn::sum || fn == ReduceFn::sumsq;
    int64_t at = leaves.lo, row = 0;
    while (int64_t count = orr_tree_node(&at, leaves.lo + leaves.n, leaves.total)) {
      int64_t first = row, last = row += count * segment;
      parallel_ranges(outer * inner, 64, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* from = x + i / inner * length * inner + i % inner;
          int64_t value = adds ? 0 : int64_t(from[first * inner]);
          for (int64_t k = first; k < last; ++k) value = join(fn, value, int64_t(from[k * inner]));
          y[i] = Y(value);
        }
      });
      y += outer * inner;
    }
  }

  ReduceFn fn;
  Leaves leaves;
  int64_t outer, length, inner;
};

template <class T>
Kernel* make_out(const orr_op& op) {
  if (op.out[0].dtype == ORR_I64) return new ReduceInt<T, int64_t>(op);
  return new ReduceInt<T, T>(op);
}

}  // namespace

Kernel* make_reduce_int(const orr_op& op) {
  switch (op.in[0].dtype) {
    case ORR_I32: return make_out<int32_t>(op);
    case ORR_I64: return make_out<int64_t>(op);
    default: return make_out<uint8_t>(op);
  }
}

}  // namespace orr_cpu::ORR_ISA
