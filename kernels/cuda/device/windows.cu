// SPDX-License-Identifier: Apache-2.0
//
// The op fold: a thread makes an element of the result, from the windows that reach it in their
// order.
#include "kernel.h"
#include "windows.h"

namespace orr_cuda {
namespace {

// Along one dim: the windows [first, last) that may reach index l.
struct Reach {
  int64_t first, last;
  __device__ Reach(const WindowArgs& a, int d, int64_t l) {
    const int64_t outside = l - (a.size[d] - 1) * a.dilation[d], behind = l / a.stride[d] + 1;
    first = outside > 0 ? (outside + a.stride[d] - 1) / a.stride[d] : 0;
    last = behind < a.count[d] ? behind : a.count[d];
  }
};

// Which element of window o index l is; -1: it lies between two of them.
__device__ int64_t within(const WindowArgs& a, int d, int64_t l, int64_t o) {
  const int64_t at = l - o * a.stride[d], k = at / a.dilation[d];
  return k * a.dilation[d] == at ? k : -1;
}

// The sum over the windows of the innermost dim; `at` is x's index of what the outer ones chose.
template <class T>
__device__ Acc<T> sum_along(const WindowArgs& a, int64_t windows, int64_t l, int64_t k0, int64_t k1,
                            int64_t column, Acc<T> sum) {
  const Reach reach(a, 2, l);
  const int64_t step = a.size[0] * a.size[1] * a.size[2];
  int64_t at = (windows * a.count[2] + reach.first) * step + (k0 * a.size[1] + k1) * a.size[2];
  for (int64_t o = reach.first; o < reach.last; ++o, at += step) {
    const int64_t k2 = within(a, 2, l, o);
    if (k2 >= 0) sum = plus(sum, get(static_cast<const T*>(a.x)[(at + k2) * a.width + column]));
  }
  return sum;
}

template <class T>
__device__ void window_sum(const WindowArgs& a) {
  const int64_t n = a.lead * a.length[0] * a.length[1] * a.length[2] * a.width;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
       i += int64_t(gridDim.x) * blockDim.x) {
    int64_t rest = i / a.width;
    const int64_t column = i - rest * a.width, l2 = rest % a.length[2];
    const int64_t l1 = (rest /= a.length[2]) % a.length[1],
                  l0 = (rest /= a.length[1]) % a.length[0];
    const int64_t lead = rest / a.length[0];
    const Reach outer(a, 0, l0), inner(a, 1, l1);
    Acc<T> sum = 0;
    for (int64_t o0 = outer.first; o0 < outer.last; ++o0) {
      const int64_t k0 = within(a, 0, l0, o0);
      for (int64_t o1 = k0 < 0 ? inner.last : inner.first; o1 < inner.last; ++o1)
        if (const int64_t k1 = within(a, 1, l1, o1); k1 >= 0)
          sum =
              sum_along<T>(a, (lead * a.count[0] + o0) * a.count[1] + o1, l2, k0, k1, column, sum);
    }
    static_cast<T*>(a.y)[i] = rounded<T>(sum);
  }
}

}  // namespace

ORR_NUMBER_KERNELS(window_sum, kWindowThreads, WindowArgs)

}  // namespace orr_cuda
