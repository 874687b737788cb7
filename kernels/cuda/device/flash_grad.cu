// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on tensor cores. One launch has a block for some queries and computes
// delta and dq, another has one for some keys and computes dk and dv. Scores are computed twice,
// but every sum has one order and needs no atomics. Rows are queries in the first launch, keys in
// the second.
#include "flash_tile.h"

namespace orr_cuda {
namespace {

// Rows that go by at a time.
template <int width>
constexpr int kStep = flash_step(width);

struct Statistic {
  float lse, delta;  // lse in base 2
};

// lse of a query in base 2. 0 beyond the queries, and where one sees no key, so that scores of
// -infinity less it are not NaN.
__device__ float lse_of(const AttentionArgs& a, int t) {
  if (t >= a.queries) return 0.0f;
  const float lse = static_cast<const float*>(a.lse)[first_statistic(a) + t];
  return lse == -HUGE_VALF ? 0.0f : lse * kLog2E;
}

__device__ Statistic statistic_of(const AttentionArgs& a, int t) {
  const auto* delta = static_cast<const float*>(a.delta) + first_statistic(a);
  return {lse_of(a, t), t < a.queries ? delta[t] : 0.0f};
}

// Scores to weights; lse(n, j) is of element j of p[n].
template <int columns, class F>
__device__ void to_weights(Result (&p)[columns], float scale, F lse) {
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) p[n].x[j] = exp2_fast(fmaf(p[n].x[j], scale, -lse(n, j)));
}

// Awaits the products of do with values, and applies dropout to them. It waits in both branches: a
// wait before them would be moved to a place before the weights, which are computed meanwhile.
template <int columns>
__device__ void await_slopes(const AttentionArgs& a, uint32_t left, Result (&ds)[columns]) {
  if (a.seed) {
    const float keep = float(a.keep);
    await_products<0>(ds);
    leave_out(left, keep, ds);
  } else {
    await_products<0>(ds);
  }
}

// Products of do with values, of which p are the weights, to the gradient of the scores.
template <int columns, class F>
__device__ void to_slopes(Result (&ds)[columns], const Result (&p)[columns], F delta) {
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) ds[n].x[j] = p[n].x[j] * (ds[n].x[j] - delta(n, j));
}

template <class T, int width>
__device__ void flash_grad_q(const AttentionArgs& a) {
  constexpr int step = kStep<width>;
  using Queries = Tile<T, kFlashRows, width>;
  using Keys = Tile<T, step, width>;
  T* shared = reinterpret_cast<T*>(tile_memory());
  const Queries q{shared}, d_o{shared + Queries::elements};
  const auto buffer = [&](int i) {
    return Keys{shared + 2 * Queries::elements + i * Keys::elements};
  };
  const int t0 = int(gridDim.x - 1 - blockIdx.x) * kFlashRows;
  const int r = int(threadIdx.x) / 32 * 16, t = t0 + r + int(threadIdx.x) % 32 / 4;
  const int last = t0 + kFlashRows < a.queries ? t0 + kFlashRows : a.queries;
  const int tiles = (seen(a, last - 1) + step - 1) / step;
  const int whole = seen(a, t0 + r) / step;  // tiles of which this warp sees everything
  Loader<T, step, width, 2> loader(a, {a.k, a.v}, 0, a.keys);
  const auto load = [&](int i) { loader.load({buffer(i % 2), buffer(2 + i % 2)}); };
  Loader<T, kFlashRows, width, 2>(a, {a.q, a.d_o}, t0, a.queries).load({q, d_o});
  load(0);
  const float scale = float(a.scale) * kLog2E;
  const Statistic of[2] = {{lse_of(a, t), delta_of<T>(a, t, 4)},
                           {lse_of(a, t + 8), delta_of<T>(a, t + 8, 4)}};
  Result dq[width / 8] = {}, p[step / 8], ds[step / 8];
  for (int i = 0; i < tiles; ++i) {
    await_tile();
    const uint32_t left = a.seed ? left_out<false, step / 8>(a, t, i * step) : 0;
    begin_products();
    product_of_rows(q, buffer(i % 2), p);
    end_batch();
    product_of_rows(d_o, buffer(2 + i % 2), ds);
    end_batch();
    if (i + 1 < tiles) load(i + 1);
    await_products<1>(p);
    if (i >= whole) mask_keys(a, i * step, t, p);
    to_weights(p, scale, [&](int, int j) { return of[j / 2].lse; });
    await_slopes(a, left, ds);
    to_slopes(ds, p, [&](int, int j) { return of[j / 2].delta; });
    const auto slopes = as_operands<T>(ds);
    begin_products();
    add_product(slopes, buffer(i % 2), dq);
    end_products(dq);
  }
  wait_copies();
  __syncthreads();
  store_rows(a, a.dq, t0, a.queries, q, dq, float(a.scale), float(a.scale));
}

// The statistics of the queries of two tiles, in shared memory. A thread reads those of one query,
// and writes them when it has computed something else meanwhile.
template <int step>
struct Statistics {
  float* at;

  __device__ float* of(int tile) const { return at + tile % 2 * 2 * step; }
  __device__ Statistic read(const AttentionArgs& a, int tile) const {
    return statistic_of(a, int(threadIdx.x) < step ? tile * step + int(threadIdx.x) : a.queries);
  }
  __device__ void write(int tile, Statistic x) const {
    if (int(threadIdx.x) >= step) return;
    of(tile)[threadIdx.x] = x.lse, of(tile)[step + threadIdx.x] = x.delta;
  }
};

template <class T, int width>
__device__ void flash_grad_kv(const AttentionArgs& a) {
  constexpr int step = kStep<width>;
  using Keys = Tile<T, kFlashRows, width>;
  using Queries = Tile<T, step, width>;
  T* shared = reinterpret_cast<T*>(tile_memory());
  const Keys k{shared}, v{shared + Keys::elements};
  const auto buffer = [&](int i) {
    return Queries{shared + 2 * Keys::elements + i * Queries::elements};
  };
  const Statistics<step> statistics{reinterpret_cast<float*>(buffer(4).at)};
  const int s0 = int(blockIdx.x) * kFlashRows;
  const int r = int(threadIdx.x) / 32 * 16, s = s0 + r + int(threadIdx.x) % 32 / 4;
  const int first = first_query(a, s0) / step, tiles = (a.queries + step - 1) / step;
  const int hides = first_query(a, s0 + r + 15);  // queries that do not see all keys of this warp
  Loader<T, step, width, 2> loader(a, {a.q, a.d_o}, first * step, a.queries);
  const auto load = [&](int i) { loader.load({buffer(i % 2), buffer(2 + i % 2)}); };
  Loader<T, kFlashRows, width, 2>(a, {a.k, a.v}, s0, a.keys).load({k, v});
  load(first);
  statistics.write(first, statistics.read(a, first));
  const float scale = float(a.scale) * kLog2E;
  Result dk[width / 8] = {}, dv[width / 8] = {}, p[step / 8], ds[step / 8];
  for (int i = first; i < tiles; ++i) {
    await_tile();
    const Statistic next = statistics.read(a, i + 1);
    const uint32_t left = a.seed ? left_out<true, step / 8>(a, s, i * step) : 0;
    begin_products();
    product_of_rows(k, buffer(i % 2), p);
    end_batch();
    product_of_rows(v, buffer(2 + i % 2), ds);
    end_batch();
    if (i + 1 < tiles) load(i + 1);
    await_products<1>(p);
    if (i * step < hides) {
      const int t = lane_column(i * step);
      const int begins[2] = {first_query(a, s) - t, first_query(a, s + 8) - t};
      mask([&](int column, int h) { return column < begins[h]; }, p);
    }
    const float *lse = statistics.of(i) + lane_column(0), *delta = lse + step;
    to_weights(p, scale, [=](int n, int j) { return lse[n * 8 + j % 2]; });
    statistics.write(i + 1, next);
    await_slopes(a, left, ds);
    to_slopes(ds, p, [=](int n, int j) { return delta[n * 8 + j % 2]; });
    if (a.seed) leave_out(left, 1.0f, p);
    const auto weights = as_operands<T>(p), slopes = as_operands<T>(ds);
    begin_products();
    add_product(weights, buffer(2 + i % 2), dv);
    add_product(slopes, buffer(i % 2), dk);
    end_products(dv, dk);
  }
  wait_copies();
  __syncthreads();
  store_rows(a, a.dk, s0, a.keys, k, dk, float(a.scale), float(a.scale));
  store_rows(a, a.dv, s0, a.keys, v, dv, float(a.keep), float(a.keep));
}

}  // namespace

ORR_FLASH(flash_grad_q, 64)
ORR_FLASH(flash_grad_q, 128)
ORR_FLASH(flash_grad_kv, 64)
ORR_FLASH(flash_grad_kv, 128)

}  // namespace orr_cuda
