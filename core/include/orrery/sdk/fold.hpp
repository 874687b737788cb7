// SPDX-License-Identifier: Apache-2.0
//
// Folds the operands of a reduction into one, for host backends: left to right in rank order, or
// along the binary tree over the leaves (ops.h, LEAVES). The order depends on the operation only,
// not on how bytes travel, so every backend that uses this gives the same bits.
//
// 16-bit floats are folded in f32 and rounded once, to nearest even; integers wrap; NaN wins in min
// and max. The loops are plain; the compiler vectorises them, for the baseline and for AVX2. They
// are bound by memory, so wider vectors would gain nothing, and elementwise arithmetic gives equal
// bits in both.
#pragma once

#include <orrery/comm.h>
#include <orrery/ops.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <orrery/sdk/traffic.hpp>
#include <type_traits>
#include <vector>

namespace orr {

// out[i] = in[0][i] (op) in[1][i] (op) ... (op) in[k-1][i], left to right. `out` may be any of the
// inputs. REQUIRES: k >= 1.
using Fold = void (*)(void* out, const void* const* in, int k, int64_t n);

namespace folds {
#define ORR_FOLD_INLINE [[gnu::always_inline]] inline
#pragma GCC push_options
#pragma GCC optimize("O3")

struct Bf16 {
  uint16_t bits;
};
// f16, of which only conversions to and from f32 are wanted. GCC 12 has `_Float16` in C++ for x86
// alone; ARM's own type has no arithmetic, and every compiler for ARM has it.
#if defined(__aarch64__)
using F16 = __fp16;
#else
using F16 = _Float16;
#endif

// How an element is stored (T) and folded (Acc).
template <class T>
struct Element {
  using Acc = T;
  ORR_FOLD_INLINE static Acc load(T x) { return x; }
  ORR_FOLD_INLINE static T store(Acc x) { return x; }
};
template <>
struct Element<Bf16> {
  using Acc = float;
  ORR_FOLD_INLINE static float load(Bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
  ORR_FOLD_INLINE static Bf16 store(float x) {
    const uint32_t u = std::bit_cast<uint32_t>(x);
    const uint32_t even = u + 0x7FFF + (u >> 16 & 1);
    const uint32_t quiet = u | 0x400000;
    return {static_cast<uint16_t>((x != x ? quiet : even) >> 16)};
  }
};
template <>
struct Element<F16> {
  using Acc = float;
  ORR_FOLD_INLINE static float load(F16 x) { return static_cast<float>(x); }
  ORR_FOLD_INLINE static F16 store(float x) { return static_cast<F16>(x); }
};

template <int Op, class A>
ORR_FOLD_INLINE A apply(A a, A b) {
  if constexpr (std::is_integral_v<A> && (Op == ORR_RED_SUM || Op == ORR_RED_PROD)) {
    using U = std::conditional_t<sizeof(A) == 8, uint64_t, uint32_t>;
    const U x = static_cast<U>(a), y = static_cast<U>(b);
    return static_cast<A>(Op == ORR_RED_SUM ? x + y : x * y);
  } else if constexpr (Op == ORR_RED_SUM) {
    return a + b;
  } else if constexpr (Op == ORR_RED_PROD) {
    return a * b;
  } else if constexpr (std::is_integral_v<A>) {
    return Op == ORR_RED_MIN ? std::min(a, b) : std::max(a, b);
  } else {  // NaN is tested by its bits: for a != a in f16, GCC 12 emits a function call
    using I = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;
    constexpr I infinity = std::bit_cast<I>(std::numeric_limits<A>::infinity());
    const bool is_nan = (std::bit_cast<I>(a) & std::numeric_limits<I>::max()) > infinity;
    return (Op == ORR_RED_MIN ? a < b : a > b) || is_nan ? a : b;
  }
}

// out[i] = first[i] (op) in[0][at + i] (op) ... (op) in[K-1][at + i]; `first` and `out` are stored
// elements or, between passes, folded ones.
template <class T, int Op, int K, class To, class From>
ORR_FOLD_INLINE void fold_few(To* out, const From* first, const void* const* in, int64_t at,
                              int64_t n) {
  using E = Element<T>;
  const T* next[K + 1];
  for (int j = 0; j < K; ++j) next[j] = static_cast<const T*>(in[j]) + at;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    typename E::Acc acc;
    if constexpr (std::is_same_v<From, T>)
      acc = E::load(first[i]);
    else
      acc = first[i];
    for (int j = 0; j < K; ++j) acc = apply<Op>(acc, E::load(next[j][i]));
    if constexpr (std::is_same_v<To, T>)
      out[i] = E::store(acc);
    else
      out[i] = acc;
  }
}

// How many further operands a pass adds. More are faster, but compile slowly: only sums have more.
template <class T, int Op>
constexpr int few = Op == ORR_RED_SUM && !std::is_integral_v<T> ? 3 : 1;

// REQUIRES: 1 <= k <= few.
template <class T, int Op, class From>
ORR_FOLD_INLINE void fold_last(T* out, const From* first, const void* const* in, int k, int64_t at,
                               int64_t n) {
  if constexpr (few<T, Op> == 3) {
    if (k == 3) return fold_few<T, Op, 3>(out, first, in, at, n);
    if (k == 2) return fold_few<T, Op, 2>(out, first, in, at, n);
  }
  fold_few<T, Op, 1>(out, first, in, at, n);
}

template <class T, int Op>
ORR_FOLD_INLINE void fold_body(void* out, const void* const* in, int k, int64_t n) {
  constexpr int64_t block = 512;  // elements; so that the passes over a block stay in L1 cache
  constexpr int most = few<T, Op>;
  T* const to = static_cast<T*>(out);
  const T* const first = static_cast<const T*>(in[0]);
  if (k == 1) return fold_few<T, Op, 0>(to, first, nullptr, 0, n);
  if (k <= 1 + most) return fold_last<T, Op>(to, first, in + 1, k - 1, 0, n);
  alignas(64) typename Element<T>::Acc acc[block];
  for (int64_t at = 0; at < n; at += block) {
    const int64_t m = std::min(block, n - at);
    fold_few<T, Op, most>(acc, first + at, in + 1, at, m);
    int j = 1 + most;
    for (; k - j > most; j += most) {
      fold_few<T, Op, most>(acc, acc, in + j, at, m);
      asm volatile("" ::: "memory");  // without it GCC 12 does not vectorise these passes
    }
    fold_last<T, Op>(to + at, acc, in + j, k - j, at, m);
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

#pragma GCC pop_options
#undef ORR_FOLD_INLINE
}  // namespace folds

// The function for a dtype and an ORR_RED_*; null if there is none.
inline Fold fold_for(int32_t dtype, int32_t redop) {
  switch (dtype) {
    case ORR_F32: return folds::by_op<float>(redop);
    case ORR_F64: return folds::by_op<double>(redop);
    case ORR_BF16: return folds::by_op<folds::Bf16>(redop);
    case ORR_F16: return folds::by_op<folds::F16>(redop);
    case ORR_I32: return folds::by_op<int32_t>(redop);
    case ORR_I64: return folds::by_op<int64_t>(redop);
    case ORR_U8: return folds::by_op<uint8_t>(redop);
    default: return nullptr;
  }
}

// The order in which the operands of all ranks are folded. They are numbered in rank order: rank r
// has [first(r), first(r + 1)). They are folded left to right or, if they are nodes of a tree, by
// sums of two.
class FoldOrder {
 public:
  // The results of sums are numbered behind the operands, in the order of the sums.
  struct Sum {
    int a, b;
  };
  // REQUIRES: `c` adds and is well-formed.
  FoldOrder(const orr_coll& c, int ranks);

  int operands() const { return first_.back(); }
  int first(int rank) const { return first_[rank]; }
  int owned(int rank) const { return first_[rank + 1] - first_[rank]; }
  int most_owned() const;
  bool is_tree() const { return tree_; }
  const std::vector<Sum>& sums() const { return sums_; }  // of a tree; the last one is the result

 private:
  int plan_node(int64_t lo, int64_t width, int64_t total, const std::vector<int64_t>& first,
                const std::vector<int64_t>& last);
  void plan_tree(const orr_coll& c, int ranks);

  bool tree_;
  std::vector<int> first_;
  std::vector<Sum> sums_;
};

inline FoldOrder::FoldOrder(const orr_coll& c, int ranks)
    : tree_(traffic::is_tree(c.op)), first_(ranks + 1, 0) {
  for (int r = 0; r < ranks; ++r)
    first_[r + 1] = first_[r] + static_cast<int>(traffic::nodes(c, r, ranks));
  if (tree_) plan_tree(c, ranks);
}

inline int FoldOrder::most_owned() const {
  int most = 1;
  for (size_t r = 1; r < first_.size(); ++r) most = std::max(most, first_[r] - first_[r - 1]);
  return most;
}

// Plans the sums for the node over the leaves [lo, lo + width) and returns the node's number.
// Operand i is the node over the leaves [first[i], last[i]).
inline int FoldOrder::plan_node(int64_t lo, int64_t width, int64_t total,
                                const std::vector<int64_t>& first,
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

inline void FoldOrder::plan_tree(const orr_coll& c, int ranks) {
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
}

// Folds in memory of the host.
class Folding : public FoldOrder {
 public:
  // REQUIRES: `c` adds and is well-formed.
  Folding(const orr_coll& c, int ranks);

  // Folds n elements of the operands at `in`, block by block, and writes the result to every
  // address of `out`. out[0] may be one of the operands. REQUIRES: in has operands() addresses.
  void run(const std::vector<const char*>& in, const std::vector<char*>& out, int64_t n);

 private:
  // The size of a block of one operand. The blocks of all operands together fit into L1 cache.
  static constexpr int64_t block_bytes = 8 << 10;
  void run_tree(const std::vector<const char*>& in, char* out, int64_t at, int64_t n);

  int64_t unit_;
  Fold fold_;
  std::vector<char> scratch_;
  std::vector<const void*> block_in_;
};

inline Folding::Folding(const orr_coll& c, int ranks)
    : FoldOrder(c, ranks),
      unit_(orr_dtype_bytes(c.dtype)),
      fold_(fold_for(c.dtype, is_tree() ? int32_t{ORR_RED_SUM} : c.redop)),
      scratch_(sums().size() * block_bytes),
      block_in_(operands()) {}

inline void Folding::run(const std::vector<const char*>& in, const std::vector<char*>& out,
                         int64_t n) {
  if (out.empty()) return;
  const int64_t block = block_bytes / unit_;
  const int k = operands();
  for (int64_t at = 0; at < n; at += block) {
    const int64_t m = std::min(block, n - at);
    if (is_tree() && k > 1) {
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

inline void Folding::run_tree(const std::vector<const char*>& in, char* out, int64_t at,
                              int64_t n) {
  const int inputs = operands();
  const auto operand = [&](int i) -> const void* {
    return i < inputs ? in[i] + at * unit_ : scratch_.data() + (i - inputs) * block_bytes;
  };
  for (size_t s = 0; s < sums().size(); ++s) {
    const void* pair[] = {operand(sums()[s].a), operand(sums()[s].b)};
    char* to = s + 1 == sums().size() ? out + at * unit_ : scratch_.data() + s * block_bytes;
    fold_(to, pair, 2, n);
  }
}

}  // namespace orr
