// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on tensor cores. One launch has a block for some queries and computes
// dq, another has one for some keys and computes dk and dv. Scores are computed twice, but every
// sum has one order and needs no atomics. Rows are queries in the first launch, keys in the second.
#include "flash_tile.h"

namespace orr_cuda {
namespace {

constexpr float kLog2E = 1.44269504f;
constexpr int kStep = kFlashStep;

// What the gradient needs to know of this lane's queries t and t + 8.
struct QueryPair {
  float lse[2], delta[2];
  int ends[2];  // the keys that they see

  __device__ void read(const AttentionArgs& a, int t) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool exists = t + 8 * h < a.queries;
      const int64_t at = first_statistic(a) + t + 8 * h;
      lse[h] = exists ? static_cast<const float*>(a.lse)[at] * kLog2E : 0.0f;
      delta[h] = exists ? static_cast<const float*>(a.delta)[at] : 0.0f;
      ends[h] = exists ? seen(a, t + 8 * h) : 0;
    }
  }
};

// Scores p and the products of do with values ds to the gradient of the scores, in ds. `first` is
// the tile's first key.
__device__ void grad_of_scores(const QueryPair& of, float scale, int first, const Result* p,
                               Result* ds) {
#pragma unroll
  for (int n = 0; n < kStep / 8; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int key = first + n * 8 + int(threadIdx.x) % 4 * 2 + j % 2;
      const float e = exp2_fast(fmaf(p[n].x[j], scale, -of.lse[j / 2]));
      ds[n].x[j] = key < of.ends[j / 2] ? e * (ds[n].x[j] - of.delta[j / 2]) : 0.0f;
    }
}

template <class T, int width>
__device__ void flash_grad_q(const AttentionArgs& a) {
  using Rows = Tile<T, width>;
  constexpr int sixteens = kSixteens<width>, rows = kBlockRows<width>;
  T* shared = reinterpret_cast<T*>(dynamic_shared());
  const Rows q{shared}, d_o{shared + rows * Rows::stride};
  const auto buffer = [&](int i) { return Rows{shared + (2 * rows + i * kStep) * Rows::stride}; };
  const int t0 = int(gridDim.x - 1 - blockIdx.x) * rows;
  const int r = int(threadIdx.x) / 32 * 16 * sixteens, t = t0 + r + int(threadIdx.x) % 32 / 4;
  const int last = t0 + rows < a.queries ? t0 + rows : a.queries;
  const int tiles = (seen(a, last - 1) + kStep - 1) / kStep;
  const int end = t0 + r < a.queries ? seen(a, t0 + r + 16 * sixteens - 1) : 0;  // of the warp
  const auto load = [&](int i) {
    buffer(i % 2).load(a, a.k, i * kStep, kStep, a.keys);
    buffer(2 + i % 2).load(a, a.v, i * kStep, kStep, a.keys);
    commit_copies();
  };
  q.load(a, a.q, t0, rows, a.queries);
  d_o.load(a, a.d_o, t0, rows, a.queries);
  load(0);
  const float scale = float(a.scale) * kLog2E;
  QueryPair of[sixteens];
#pragma unroll
  for (int m = 0; m < sixteens; ++m) of[m].read(a, t + 16 * m);
  const Dropout dropout(a);
  Result dq[sixteens][width / 8] = {}, p[sixteens][kStep / 8], ds[sixteens][kStep / 8];
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) load(i + 1);
    i + 1 < tiles ? wait_copies<1>() : wait_copies<0>();
    __syncthreads();
    if (i * kStep < end) {
      product_of_rows(q, r, buffer(i % 2), p);
      product_of_rows(d_o, r, buffer(2 + i % 2), ds);
#pragma unroll
      for (int m = 0; m < sixteens; ++m) {
        if (dropout.on) leave_out<kStep>(dropout, i * kStep, t + 16 * m, float(a.keep), ds[m]);
        grad_of_scores(of[m], scale, i * kStep, p[m], ds[m]);
      }
      add_product(ds, buffer(i % 2), dq);
    }
    __syncthreads();
  }
  wait_copies<0>();
  __syncthreads();
#pragma unroll
  for (int m = 0; m < sixteens; ++m)
    store_rows(a, a.dq, t0, a.queries, q, r + 16 * m, dq[m], float(a.scale), float(a.scale));
}

// Which weights of this lane's keys s and s + 8 dropout leaves out in a tile: a bit for each.
// `first` is the tile's first query.
__device__ uint32_t left_out(const AttentionArgs& a, int first, int s) {
  const Dropout dropout(a);
  uint32_t bits = 0;
#pragma unroll 1
  for (int e = 0; e < kStep / 2; ++e) {
    const int query = first + e / 4 * 8 + int(threadIdx.x) % 4 * 2 + e % 2;
    bits |= uint32_t(dropout.leaves_out(query, s + e % 4 / 2 * 8)) << e;
  }
  return bits;
}

// Multiplies what is left in by `factor`; the rest becomes 0.
__device__ void leave_out_bits(uint32_t bits, float factor, Result* x) {
#pragma unroll
  for (int e = 0; e < kStep / 2; ++e)
    x[e / 4].x[e % 4] = bits >> e & 1 ? 0.0f : x[e / 4].x[e % 4] * factor;
}

// Scores p of this lane's keys s and s + 8 to the weights of the values, and the products of values
// with do to the gradient of the scores, in ds. `first` is the tile's first query; `lse` and
// `delta` are of its queries.
__device__ void weights_and_grad(const AttentionArgs& a, float scale, int first, int s,
                                 const float* lse, const float* delta, Result* p, Result* ds) {
  const uint32_t bits = a.seed ? left_out(a, first, s) : 0;
  if (a.seed) leave_out_bits(bits, float(a.keep), ds);
  const int begins[2] = {first_query(a, s), first_query(a, s + 8)};
#pragma unroll
  for (int n = 0; n < kStep / 8; ++n)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = n * 8 + int(threadIdx.x) % 4 * 2 + j % 2, query = first + column;
      const bool sees = query >= begins[j / 2] && query < a.queries;
      const float e = exp2_fast(fmaf(p[n].x[j], scale, -lse[column]));
      p[n].x[j] = sees ? e : 0.0f;
      ds[n].x[j] = p[n].x[j] * (ds[n].x[j] - delta[column]);
    }
  if (a.seed) leave_out_bits(bits, float(a.keep), p);
}

template <class T, int width>
__device__ void flash_grad_kv(const AttentionArgs& a) {
  using Rows = Tile<T, width>;
  constexpr int sixteens = kSixteens<width>, rows = kBlockRows<width>;
  T* shared = reinterpret_cast<T*>(dynamic_shared());
  const Rows k{shared}, v{shared + rows * Rows::stride};
  const auto buffer = [&](int i) { return Rows{shared + (2 * rows + i * kStep) * Rows::stride}; };
  // lse and delta of the queries of both buffers.
  __shared__ float statistics[2][2][kStep];
  const int s0 = int(blockIdx.x) * rows, rank = int(threadIdx.x);
  const int r = rank / 32 * 16 * sixteens, s = s0 + r + rank % 32 / 4;
  const int first = first_query(a, s0) / kStep, tiles = (a.queries + kStep - 1) / kStep;
  const int begin = s0 + r < a.keys ? first_query(a, s0 + r) : a.queries;  // of the warp
  const auto load = [&](int i) {
    buffer(i % 2).load(a, a.q, i * kStep, kStep, a.queries);
    buffer(2 + i % 2).load(a, a.d_o, i * kStep, kStep, a.queries);
    commit_copies();
    if (rank >= kStep) return;
    const bool exists = i * kStep + rank < a.queries;
    const int64_t at = first_statistic(a) + i * kStep + rank;
    statistics[i % 2][0][rank] = exists ? static_cast<const float*>(a.lse)[at] * kLog2E : 0.0f;
    statistics[i % 2][1][rank] = exists ? static_cast<const float*>(a.delta)[at] : 0.0f;
  };
  k.load(a, a.k, s0, rows, a.keys);
  v.load(a, a.v, s0, rows, a.keys);
  load(first);
  const float scale = float(a.scale) * kLog2E;
  Result dk[sixteens][width / 8] = {}, dv[sixteens][width / 8] = {};
  Result p[sixteens][kStep / 8], ds[sixteens][kStep / 8];
  for (int i = first; i < tiles; ++i) {
    if (i + 1 < tiles) load(i + 1);
    i + 1 < tiles ? wait_copies<1>() : wait_copies<0>();
    __syncthreads();
    if ((i + 1) * kStep > begin) {
      product_of_rows(k, r, buffer(i % 2), p);
      product_of_rows(v, r, buffer(2 + i % 2), ds);
#pragma unroll
      for (int m = 0; m < sixteens; ++m)
        weights_and_grad(a, scale, i * kStep, s + 16 * m, statistics[i % 2][0],
                         statistics[i % 2][1], p[m], ds[m]);
      add_product(p, buffer(2 + i % 2), dv);
      add_product(ds, buffer(i % 2), dk);
    }
    __syncthreads();
  }
  wait_copies<0>();
  __syncthreads();
#pragma unroll
  for (int m = 0; m < sixteens; ++m) {
    store_rows(a, a.dk, s0, a.keys, k, r + 16 * m, dk[m], float(a.scale), float(a.scale));
    store_rows(a, a.dv, s0, a.keys, v, r + 16 * m, dv[m], 1.0f, 1.0f);
  }
}

}  // namespace

#define ORR_FLASH(name, width)                                                       \
  ORR_KERNEL(name##_##width##_bf16, kFlashThreads, AttentionArgs, name<Bf16, width>) \
  ORR_KERNEL(name##_##width##_f16, kFlashThreads, AttentionArgs, name<F16, width>)
ORR_FLASH(flash_grad_q, 32)
ORR_FLASH(flash_grad_q, 64)
ORR_FLASH(flash_grad_q, 128)
ORR_FLASH(flash_grad_kv, 32)
ORR_FLASH(flash_grad_kv, 64)
ORR_FLASH(flash_grad_kv, 128)

}  // namespace orr_cuda
