// SPDX-License-Identifier: Apache-2.0
//
// The micro-kernel of all matrix products: it computes a tile of C in registers, with one chain of
// fma over K per element and lanes along the columns. Columns of B and C are whole vectors; there
// may be fewer rows than a tile has.
#pragma once

#include "vec.h"

namespace orr_cpu::ORR_ISA {

ORR_INLINE v16f fill(float x) { return splat(x); }

template <class T>
struct Lanes;
template <>
struct Lanes<float> {
  using V = v16f;
  enum { count = 16, cols = 16 * kMicroVectors };
};
template <>
struct Lanes<double> {
  using V = v8d;
  enum { count = 8, cols = 8 * kMicroVectors };
};

// Memory that will be packed next: `runs` pieces of `bytes` bytes, `step` bytes apart. The
// micro-kernel prefetches a line of it from time to time, so that packing does not wait for memory.
struct Ahead {
  const char* at = nullptr;
  int64_t step = 0, bytes = 0, runs = 0, done = 0;

  ORR_INLINE void next() {
    if (runs <= 0) return;
    __builtin_prefetch(at + done, 0, 2);
    done += 64;
    if (done < bytes) return;
    done = 0;
    at += step;
    --runs;
  }
};

// The distance of rows of A that are packed as rows: 256 elements and a little more, so that rows
// fall into different sets of the cache.
constexpr int64_t kRowStride = 256 + 16;

// In which order elements of K are added (ops.h, matmul): bf16 in pairs, the second first, by one
// instruction where the CPU has it. `tiles`: in AMX's order (matmul_amx.h).
enum class Along { k, swapped, pairs, tiles };

// Both products of pairs of bf16, that of the high halves first (AVX512-BF16's vdpbf16ps; subnormal
// factors, sums and results count as 0).
#ifdef __AVX512F__
ORR_INLINE v16f add_pairs(v16f x, v16f y, v16f sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.v) : "v"(x.v), "v"(y.v));
  return sum;
}
#else
ORR_INLINE v16f add_pairs(v16f, v16f, v16f sum) { return sum; }  // no plan asks for it
#endif

// Between `begin` and `end`, subnormal factors and sums count as 0, as they do in add_pairs. The
// compiler does not move arithmetic on `sums` across these two calls.
template <Along kAlong>
struct Flushing {
  template <class V>
  static ORR_INLINE void begin(V* sums, int n) {
    if constexpr (kAlong == Along::swapped) switch_to(float_control() | kFlush, sums, n);
  }
  template <class V>
  static ORR_INLINE void end(V* sums, int n) {
    if constexpr (kAlong == Along::swapped) switch_to(float_control() & ~kFlush, sums, n);
  }

 private:
  // Doubles are never swapped.
  static ORR_INLINE void switch_to(decltype(float_control()), v8d*, int) {}
  static ORR_INLINE void switch_to(decltype(float_control()) state, v16f* sums, int n) {
    for (int i = 0; i < n; ++i) hold(sums[i]);
    set_float_control(state);
    for (int i = 0; i < n; ++i) hold(sums[i]);
  }
};

// Which element of K comes k-th.
template <Along kAlong>
ORR_INLINE int64_t kth(int64_t k, int64_t kc) {
  return kAlong == Along::swapped && (k ^ 1) < kc ? k ^ 1 : k;
}
// Whether the k-th element has no partner, in whose place 0 is added first.
template <Along kAlong>
ORR_INLINE bool is_alone(int64_t k, int64_t kc) {
  return kAlong == Along::swapped && !(k & 1) && k + 1 == kc;
}

// Element (r, k) of A is a[r*a_step + k] if kByRows, else a[k*a_step + r]. Row k of B begins at b +
// k*b_step. Computes C = A*B, or with `add` C += A*B, where the product is summed by itself first.
template <class T>
struct MicroArgs {
  int64_t kc;  // or the number of pairs
  const T* a;
  int64_t a_step;
  const T* b;
  int64_t b_step;
  T* c;
  int64_t c_step;
  bool add;
  Ahead* ahead;        // an array of two, or null
  int64_t rarely = 7;  // steps of K between two lines of `ahead`, less one: a power of two less one
  bool stream = false;  // stores to C bypass the caches. REQUIRES: !add, floats, C on whole lines
};

template <class T, Along kAlong, int kRows, int kVectors, bool kByRows>
__attribute__((noinline)) void micro_kernel(const MicroArgs<T>& args) {
  using V = typename Lanes<T>::V;
  constexpr int lanes = Lanes<T>::count;
  constexpr int kNear = kByRows ? 3 : kRows;  // rows that one address reaches
  T* c = args.c;
  if (!args.stream) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) __builtin_prefetch(c + r * args.c_step + j * lanes, 1);
  }
  V sum[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) sum[r][j] = fill(T(0));
  Flushing<kAlong>::begin(&sum[0][0], kRows * kVectors);
  const int64_t across = kByRows ? args.a_step : 1, a_step = kByRows ? 1 : args.a_step;
  const T* base[(kRows + kNear - 1) / kNear];
  for (int r = 0; r < kRows; r += kNear) base[r / kNear] = args.a + r * across;
  for (int64_t i = 0; i < args.kc; ++i) {
    const int64_t k = kth<kAlong>(i, args.kc);
    const T* b = args.b + k * args.b_step;
    if (args.ahead && !(k & args.rarely)) {
      args.ahead[0].next();
      args.ahead[1].next();
    }
    if (is_alone<kAlong>(i, args.kc)) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) sum[r][j] = sum[r][j] + fill(T(0));
    }
    V row[kVectors];
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) row[j] = load(b + j * lanes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      V x = fill(base[r / kNear][k * a_step + r % kNear * across]);
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) {
        if constexpr (kAlong == Along::pairs)
          sum[r][j] = add_pairs(x, row[j], sum[r][j]);
        else
          sum[r][j] = fma(x, row[j], sum[r][j]);
      }
    }
  }
  Flushing<kAlong>::end(&sum[0][0], kRows * kVectors);
  const int64_t step = args.c_step;
  if (args.add) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) sum[r][j] = load(c + r * step + j * lanes) + sum[r][j];
  }
  if constexpr (sizeof(T) == 4)
    if (args.stream) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r, c += step)
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) stream(c + j * lanes, sum[r][j]);
      return;
    }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r, c += step)
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) store(c + j * lanes, sum[r][j]);
}

// Runs the micro-kernel for a tile of `rows` x `vectors`. REQUIRES: both are at least 1, and at
// most the full tile.
template <class T, Along kAlong = Along::k, bool kByRows = false, int kRows = kMicroRows>
inline void multiply_micro(int rows, int vectors, const MicroArgs<T>& args) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_micro<T, kAlong, kByRows, kRows - 1>(rows, vectors, args);
  }
  if (kMicroVectors == 1 || vectors == 1)
    micro_kernel<T, kAlong, kRows, 1, kByRows>(args);
  else
    micro_kernel<T, kAlong, kRows, kMicroVectors, kByRows>(args);
}

}  // namespace orr_cpu::ORR_ISA
