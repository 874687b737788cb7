// SPDX-License-Identifier: Apache-2.0
//
// Plain loops that the compiler vectorises, compiled for the baseline and for AVX2. They are bound by
// memory, so wider vectors gain nothing; elementwise arithmetic gives equal bits in both.
#include "arithmetic.h"

#include <orrery/comm.h>

#include <bit>
#include <type_traits>

#pragma GCC optimize("O3")

namespace shared {
namespace {

struct Bf16 {
  uint16_t bits;
};

#define ORR_INLINE [[gnu::always_inline]] inline

// How an element is stored (T) and folded (Acc).
template <class T>
struct Element {
  using Acc = T;
  ORR_INLINE static Acc load(T x) { return x; }
  ORR_INLINE static T store(Acc x) { return x; }
};
template <>
struct Element<Bf16> {
  using Acc = float;
  ORR_INLINE static float load(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
  ORR_INLINE static Bf16 store(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    const uint32_t even = u + 0x7FFF + (u >> 16 & 1);
    const uint32_t quiet = u | 0x400000;
    return {static_cast<uint16_t>((x != x ? quiet : even) >> 16)};
  }
};
template <>
struct Element<_Float16> {
  using Acc = float;
  ORR_INLINE static float load(_Float16 x) { return static_cast<float>(x); }
  ORR_INLINE static _Float16 store(float x) { return static_cast<_Float16>(x); }
};

template <int Op, class A>
ORR_INLINE A apply(A a, A b) {
  if constexpr (std::is_integral_v<A> && (Op == ORR_RED_SUM || Op == ORR_RED_PROD)) {
    using U = std::conditional_t<sizeof(A) == 8, uint64_t, uint32_t>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    return static_cast<A>(Op == ORR_RED_SUM ? x + y : x * y);
  } else if constexpr (Op == ORR_RED_SUM) {
    return a + b;
  } else if constexpr (Op == ORR_RED_PROD) {
    return a * b;
  } else {
    const bool first = Op == ORR_RED_MIN ? a < b : a > b;
    return first || a != a ? a : b;
  }
}

template <class T, int Op>
ORR_INLINE void fold_body(void* out, const void* const* in, int k, int64_t n) {
  using E = Element<T>;
  constexpr int64_t block = 512;
  T* to = static_cast<T*>(out);
  if (k == 2) {
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = E::store(apply<Op>(E::load(a[i]), E::load(b[i])));
    return;
  }
  for (int64_t at = 0; at < n; at += block) {
    typename E::Acc acc[block];
    const int64_t m = n - at < block ? n - at : block;
    const T* first = static_cast<const T*>(in[0]) + at;
    for (int64_t i = 0; i < m; ++i) acc[i] = E::load(first[i]);
    for (int j = 1; j < k; ++j) {
      const T* next = static_cast<const T*>(in[j]) + at;
      for (int64_t i = 0; i < m; ++i) acc[i] = apply<Op>(acc[i], E::load(next[i]));
    }
    for (int64_t i = 0; i < m; ++i) to[at + i] = E::store(acc[i]);
  }
}

template <class T, int Op>
void fold_base(void* out, const void* const* in, int k, int64_t n) {
  fold_body<T, Op>(out, in, k, n);
}
#if defined(__x86_64__)
template <class T, int Op>
[[gnu::target("avx2,f16c")]] void fold_avx2(void* out, const void* const* in, int k, int64_t n) {
  fold_body<T, Op>(out, in, k, n);
}
#endif

template <class T, int Op>
Fold pick() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return fold_avx2<T, Op>;
#endif
  return fold_base<T, Op>;
}

template <class T>
Fold by_op(int32_t redop) {
  switch (redop) {
    case ORR_RED_SUM: return pick<T, ORR_RED_SUM>();
    case ORR_RED_PROD: return pick<T, ORR_RED_PROD>();
    case ORR_RED_MIN: return pick<T, ORR_RED_MIN>();
    case ORR_RED_MAX: return pick<T, ORR_RED_MAX>();
    default: return nullptr;
  }
}

}  // namespace

Fold fold_for(int32_t dtype, int32_t redop) {
  switch (dtype) {
    case ORR_F32: return by_op<float>(redop);
    case ORR_F64: return by_op<double>(redop);
    case ORR_BF16: return by_op<Bf16>(redop);
    case ORR_F16: return by_op<_Float16>(redop);
    case ORR_I32: return by_op<int32_t>(redop);
    case ORR_I64: return by_op<int64_t>(redop);
    case ORR_U8: return by_op<uint8_t>(redop);
    default: return nullptr;
  }
}

}  // namespace shared
