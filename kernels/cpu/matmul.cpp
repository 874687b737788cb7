// SPDX-License-Identifier: Apache-2.0
//
// matmul: operands are packed into panels for the micro-kernel; if a has few rows, b is read once
// without packing.
#include "kernel.h"
#include "matmul_tile.h"
#include "matmul_vector.h"
#include "typed.h"
#include "winograd_plan.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class S, class Y>
constexpr Along along_of = Along::k;
template <>
constexpr Along along_of<bf16, bf16> = Along::swapped;

bool takes_pairs() {
#ifdef __AVX512F__
  return pairs_are_fast();
#else
  return false;
#endif
}

bool takes_amx([[maybe_unused]] const orr_op& op) {
#ifdef __AVX512F__
  return use_amx(op) && amx_works();
#else
  return false;
#endif
}

template <class S, class Y>
struct Matmul : Kernel {
  using T = Scalar<S>;

  explicit Matmul(const orr_op& op)
      : plan(op,
             takes_amx(op) ? kAmxTile
                           : MicroTile{kMicroRows, Lanes<T>::cols, Lanes<T>::count, takes_pairs()},
             threads()) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const S *a = host<S>(in[0]), *b = host<S>(in[1]);
    if (plan.swapped) {
      const S* t = a;
      a = b, b = t;
    }
    T* scratch = (T*)aligned_scratch(work);
    if constexpr (sizeof(T) == 4)
      if (plan.vector) return vector(a, b, host<Y>(out[0]), scratch);
    Y* y = host<Y>(out[0]);
#ifdef __AVX512F__
    if constexpr (__is_same(S, bf16))
      if (plan.tiles) return tiles<Along::tiles>(a, b, y, scratch);
    if constexpr (along_of<S, Y> == Along::swapped)
      if (plan.pairs) return tiles<Along::pairs>(a, b, y, scratch);
#endif
    tiles<along_of<S, Y>>(a, b, y, scratch);
  }

  template <Along kAlong>
  void tiles(const S* a, const S* b, Y* y, T* scratch) const {
    int64_t n = plan.shape.g * plan.tiles_m * plan.tiles_n, slots = smaller(plan.slots, n);
    parallel(slots, [&](int64_t i) {
      MatmulSlot<S, Y, kAlong> slot(plan, a, b, y,
                                    scratch + plan.shared + i * plan.slot_elements());
      slot.run(i * n / slots, (i + 1) * n / slots);
    });
  }

  void vector(const S* a, const S* b, Y* y, T* scratch) const {
    for (int64_t g = 0; g < plan.shape.g; ++g) switch (plan.shape.m) {
        case 1: vector_of<1>(g, a, b, y, scratch); break;
        case 2: vector_of<2>(g, a, b, y, scratch); break;
        default: vector_of<3>(g, a, b, y, scratch);
      }
  }

  template <int M>
  void vector_of(int64_t g, const S* a, const S* b, Y* y, T* scratch) const {
    const MatmulShape& s = plan.shape;
    for (int64_t m = 0; m < M; ++m)
      for (int64_t k = 0; k < s.k; ++k)
        scratch[m * s.k + k] = load_one(a + g * s.a.batch + m * s.a.row + k * s.a.col);
    int64_t groups = ceil_div(s.n, 16), slots = smaller(plan.slots, groups);
    parallel(slots, [&](int64_t i) {
      MatmulVector<S, Y, M, along_of<S, Y>>{plan, scratch, b, y,
                                            scratch + plan.shared + i * plan.slot_elements()}
          .columns(g, groups * i / slots * 16, smaller(groups * (i + 1) / slots * 16, s.n));
    });
  }

  MatmulPlan plan;
};

}  // namespace

Kernel* make_winograd(const orr_op& op);  // winograd.cpp

Kernel* make_matmul(const orr_op& op) {
  if (use_winograd(op)) return make_winograd(op);
  return make_sum<Matmul>(op.in[0].dtype, op.out[0].dtype, op);
}

}  // namespace orr_cpu::ORR_ISA
