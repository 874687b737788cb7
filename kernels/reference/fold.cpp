// SPDX-License-Identifier: Apache-2.0
//
// fold: windows laid over each other and added up.
#include "op.h"

#include <algorithm>

namespace reference {
namespace {

// One to three windowed dims as three, of which the first may have the extent 1.
struct Geometry {
  explicit Geometry(const orr_op& op) {
    const orr_attr &strides = *orr::attr(op, "stride"), &dilations = *orr::attr(op, "dilation");
    const int n = strides.count, shift = 3 - n;
    for (int i = 0; i < n; ++i) {
      count[shift + i] = op.in[0].dims[1 + i], size[shift + i] = op.in[0].dims[1 + n + i];
      length[shift + i] = op.out[0].dims[1 + i];
      stride[shift + i] = strides.ints[i], dilation[shift + i] = dilations.ints[i];
    }
    lead = op.in[0].dims[0], width = op.in[0].dims[1 + 2 * n];
  }
  // Which element of its window o index l is along dim d; -1: it is none.
  int64_t within(int d, int64_t l, int64_t o) const {
    const int64_t at = l - o * stride[d];
    return at < 0 || at % dilation[d] || at / dilation[d] >= size[d] ? -1 : at / dilation[d];
  }
  int64_t lead, width;
  int64_t count[3] = {1, 1, 1}, size[3] = {1, 1, 1}, length[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
};

void check(const orr_op& op) {
  require_counts(op, 1, 1);
  const orr_attr *stride = orr::attr(op, "stride"), *dilation = orr::attr(op, "dilation");
  require(stride && dilation && stride->count >= 1 && stride->count <= 3 &&
              dilation->count == stride->count,
          "stride and dilation must have one to three numbers each");
  require_rank(op.in[0], 2 * stride->count + 2, "x");
  require_rank(op.out[0], stride->count + 2, "y");
  require_dtype(op.out[0], op.in[0].dtype, "y");
  require(op.in[0].dtype != ORR_BOOL, "x must not be bool");
  const Geometry g(op);
  bool fits = op.out[0].dims[0] == g.lead && op.out[0].dims[stride->count + 1] == g.width;
  for (int d = 0; d < 3; ++d)
    fits = fits && g.stride[d] > 0 && g.dilation[d] > 0 && g.count[d] > 0 && g.size[d] > 0 &&
           (g.count[d] - 1) * g.stride[d] + (g.size[d] - 1) * g.dilation[d] < g.length[d];
  require(fits, "the windows do not fit into y");
}

template <class T>
void fold(const Call& call, const Geometry& g) {
  const int64_t *n = g.count, *k = g.size, *length = g.length;
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  orr::parallel_for(g.lead * length[0] * length[1] * length[2], [&, x, y](int64_t row) {
    const int64_t l2 = row % length[2], l1 = row / length[2] % length[1],
                  l0 = row / length[2] / length[1] % length[0],
                  b = row / length[2] / length[1] / length[0];
    for (int64_t c = 0; c < g.width; ++c) {
      Acc<T> sum = 0;
      for (int64_t o0 = 0; o0 < n[0]; ++o0)
        for (int64_t o1 = 0; o1 < n[1]; ++o1)
          for (int64_t o2 = 0; o2 < n[2]; ++o2) {
            const int64_t k0 = g.within(0, l0, o0), k1 = g.within(1, l1, o1),
                          k2 = g.within(2, l2, o2);
            if (std::min({k0, k1, k2}) < 0) continue;
            const int64_t window = ((b * n[0] + o0) * n[1] + o1) * n[2] + o2;
            const int64_t at = ((window * k[0] + k0) * k[1] + k1) * k[2] + k2;
            sum = plus(sum, get(x[at * g.width + c]));
          }
      put(y[row * g.width + c], sum);
    }
  });
}

void run(const Call& call) {
  with_any(call.op.in[0].dtype, [&]<class T>(Type<T>) { fold<T>(call, Geometry(call.op)); });
}

}  // namespace

const Family fold_family = {"fold", "reference.fold.1", check, run, nullptr, 0, 0, nullptr};

}  // namespace reference
