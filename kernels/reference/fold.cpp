// SPDX-License-Identifier: Apache-2.0
//
// fold: windows laid over each other and added up.
#include <algorithm>
#include <orrery/sdk/kind_checks.hpp>

#include "op.h"

namespace reference {
namespace {

// Which element of its window o index l is along dim d; -1: it is none.
int64_t within(const Windows& w, int d, int64_t l, int64_t o) {
  const int64_t at = l - o * w.stride[d];
  return at < 0 || at % w.dilation[d] || at / w.dilation[d] >= w.size[d] ? -1 : at / w.dilation[d];
}

template <class T>
void fold(const Call& call, const Windows& g) {
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
            const int64_t k0 = within(g, 0, l0, o0), k1 = within(g, 1, l1, o1),
                          k2 = within(g, 2, l2, o2);
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
  with_any(call.op.in[0].dtype, [&]<class T>(Type<T>) { fold<T>(call, Windows(call.op)); });
}

}  // namespace

const Family fold_family = {"fold", "reference.fold.1", require_fold, run, nullptr, 0, 0, nullptr};

}  // namespace reference
