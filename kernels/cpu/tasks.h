// SPDX-License-Identifier: Apache-2.0
//
// Helpers for per-ISA files: parallel loops over lambdas, typed buffers, integer arithmetic.
#pragma once

#include "kernel.h"

namespace orr_cpu::ORR_ISA {

// Runs fn(i) for i in [0, n) on the host's pool. fn must not throw and not call `parallel`.
template <class Fn>
inline void parallel(int64_t n, Fn&& fn) {
  auto* f = &fn;
  using F = decltype(f);
  if (n == 1) return fn(int64_t{0});
  parallel_for(
      n, [](void* arg, int64_t i) { (*static_cast<F>(arg))(i); }, (void*)f);
}

// Cuts [0, n) into tasks of `grain` and runs fn(first, last) for each.
template <class Fn>
inline void parallel_ranges(int64_t n, int64_t grain, Fn&& fn) {
  parallel((n + grain - 1) / grain, [&](int64_t i) {
    int64_t first = i * grain, last = first + grain < n ? first + grain : n;
    fn(first, last);
  });
}

template <class T>
inline T* host(const orr_buffer& b) {
  return static_cast<T*>(orr_buffer_host(&b));
}

// The scratch, aligned to a cache line; `measure` has asked for 64 extra bytes for this.
inline float* aligned_scratch(const orr_buffer* work) {
  return (float*)((uintptr_t(orr_buffer_host(work)) + 63) & ~uintptr_t(63));
}

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace orr_cpu::ORR_ISA
