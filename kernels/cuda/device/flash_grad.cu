// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on tensor cores. One launch has a block for some queries and computes
// dq, another has one for some keys and computes dk and dv. Scores are computed twice, but every
// sum has one order and needs no atomics. Rows are queries in the first launch, keys in the second.
#include "flash_tile.h"

namespace orr_cuda {
namespace {

// Rows that go by at a time.
template <int width>
constexpr int kStep = flash_step(width);

// lse of a query in base 2; 0 where it sees no key, so that scores of -infinity less it are not
// NaN.
__device__ float lse_of(const AttentionArgs& a, int t) {
  const float lse = static_cast<const float*>(a.lse)[first_statistic(a) + t];
  return lse == -HUGE_VALF ? 0.0f : lse * kLog2E;
}

__device__ float delta_of(const AttentionArgs& a, int t) {
  return static_cast<const float*>(a.delta)[first_statistic(a) + t];
}

// What the gradient needs to know of this lane's queries t and t + 8.
struct QueryPair {
  float lse[2], delta[2];

  __device__ void read(const AttentionArgs& a, int t) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool exists = t + 8 * h < a.queries;
      lse[h] = exists ? lse_of(a, t + 8 * h) : 0.0f;
      delta[h] = exists ? delta_of(a, t + 8 * h) : 0.0f;
    }
  }
};

// Scores p and the products of do with values ds to the gradient of the scores, in ds.
template <int columns>
__device__ void grad_of_scores(const QueryPair& of, float scale, const Result (&p)[columns],
                               Result (&ds)[columns]) {
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float e = exp2_fast(fmaf(p[n].x[j], scale, -of.lse[j / 2]));
      ds[n].x[j] = e * (ds[n].x[j] - of.delta[j / 2]);
    }
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
  const HeadRows<const T> keys(a, a.k, a.keys), values(a, a.v, a.keys);
  const auto load = [&](int i) {
    buffer(i % 2).load(keys, i * step);
    buffer(2 + i % 2).load(values, i * step);
  };
  q.load(HeadRows<const T>(a, a.q, a.queries), t0);
  d_o.load(HeadRows<const T>(a, a.d_o, a.queries), t0);
  load(0);
  const float scale = float(a.scale) * kLog2E;
  QueryPair of;
  of.read(a, t);
  Result dq[width / 8] = {}, p[step / 8], ds[step / 8];
  for (int i = 0; i < tiles; ++i) {
    await_tile();
    if (i + 1 < tiles) load(i + 1);
    begin_products();
    product_of_rows(q, buffer(i % 2), p);
    product_of_rows(d_o, buffer(2 + i % 2), ds);
    end_products(p, ds);
    if (a.seed) leave_out(LeftOut<false>(a, t, i * step), float(a.keep), ds);
    if ((i + 1) * step > seen(a, t0 + r)) mask_keys(a, i * step, t, p);
    grad_of_scores(of, scale, p, ds);
    const auto slopes = as_operands<T>(ds);
    begin_products();
    add_product(slopes, buffer(i % 2), dq);
    end_products(dq);
  }
  wait_copies();
  __syncthreads();
  store_rows(a, a.dq, t0, a.queries, q, dq, float(a.scale), float(a.scale));
}

// Scores p to the weights of the values, and the products of values with do to the gradient of the
// scores, in ds. `lse` and `delta` are of the tile's queries.
template <int columns>
__device__ void weights_and_grad(float scale, const float* lse, const float* delta,
                                 Result (&p)[columns], Result (&ds)[columns]) {
#pragma unroll
  for (int n = 0; n < columns; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = n * 8 + int(threadIdx.x) % 4 * 2 + j % 2;
      p[n].x[j] = exp2_fast(fmaf(p[n].x[j], scale, -lse[column]));
      ds[n].x[j] = p[n].x[j] * (ds[n].x[j] - delta[column]);
    }
}

// lse and delta of the queries of two tiles, in shared memory. A thread reads those of one query,
// and writes them when it has computed something else meanwhile.
template <int step>
struct Statistics {
  float* at;

  __device__ float* of(int tile) const { return at + tile % 2 * 2 * step; }
  __device__ float2 read(const AttentionArgs& a, int tile) const {
    const int t = tile * step + int(threadIdx.x);
    if (int(threadIdx.x) >= step || t >= a.queries) return {0.0f, 0.0f};
    return {lse_of(a, t), delta_of(a, t)};
  }
  __device__ void write(int tile, float2 x) const {
    if (int(threadIdx.x) >= step) return;
    of(tile)[threadIdx.x] = x.x, of(tile)[step + threadIdx.x] = x.y;
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
  const HeadRows<const T> queries(a, a.q, a.queries), d_o(a, a.d_o, a.queries);
  const auto load = [&](int i) {
    buffer(i % 2).load(queries, i * step);
    buffer(2 + i % 2).load(d_o, i * step);
  };
  k.load(HeadRows<const T>(a, a.k, a.keys), s0);
  v.load(HeadRows<const T>(a, a.v, a.keys), s0);
  load(first);
  statistics.write(first, statistics.read(a, first));
  const float scale = float(a.scale) * kLog2E;
  Result dk[width / 8] = {}, dv[width / 8] = {}, p[step / 8], ds[step / 8];
  for (int i = first; i < tiles; ++i) {
    await_tile();
    if (i + 1 < tiles) load(i + 1);
    const float2 next = statistics.read(a, i + 1);
    begin_products();
    product_of_rows(k, buffer(i % 2), p);
    product_of_rows(v, buffer(2 + i % 2), ds);
    end_products(p, ds);
    if (a.seed) leave_out(LeftOut<true>(a, s, i * step), float(a.keep), ds);
    if (i * step < first_query(a, s0 + r + 15)) {
      const int begins[2] = {first_query(a, s), first_query(a, s + 8)};
      mask(
          i * step, [&](int query, int h) { return query < begins[h]; }, p);
    }
    weights_and_grad(scale, statistics.of(i), statistics.of(i) + step, p, ds);
    if (a.seed) leave_out(LeftOut<true>(a, s, i * step), float(a.keep), p);
    const auto weights = as_operands<T>(p), slopes = as_operands<T>(ds);
    begin_products();
    add_product(weights, buffer(2 + i % 2), dv);
    add_product(slopes, buffer(i % 2), dk);
    end_products(dv, dk);
    statistics.write(i + 1, next);
  }
  wait_copies();
  __syncthreads();
  store_rows(a, a.dk, s0, a.keys, k, dk, float(a.scale), float(a.scale));
  store_rows(a, a.dv, s0, a.keys, v, dv, 1.0f, 1.0f);
}

}  // namespace

ORR_FLASH(flash_grad_q, 64)
ORR_FLASH(flash_grad_q, 128)
ORR_FLASH(flash_grad_kv, 64)
ORR_FLASH(flash_grad_kv, 128)

}  // namespace orr_cuda
