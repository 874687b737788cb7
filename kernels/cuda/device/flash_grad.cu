// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on tensor cores. One launch has a block for every 64 queries and
// computes dq, another has one for every 64 keys and computes dk and dv. Scores are computed twice,
// but every sum has one order and needs no atomics. Rows are queries in the first launch, keys in
// the second.
#include "flash_tile.h"

namespace orr_cuda {
namespace {

constexpr float kLog2E = 1.44269504f;
constexpr int kRows = 64;

// Rows that go by at a time: fewer where the sums need the registers.
template <int width>
constexpr int kStep = width > 64 ? 32 : 64;

template <class T, int width>
__device__ void flash_grad_q(const AttentionArgs& a) {
  using Rows = Tile<T, width>;
  constexpr int step = kStep<width>;
  T* shared = reinterpret_cast<T*>(dynamic_shared());
  const Rows q{shared}, d_o{shared + kRows * Rows::stride};
  const auto buffer = [&](int i) { return Rows{shared + (2 * kRows + i * step) * Rows::stride}; };
  const int t0 = int(gridDim.x - 1 - blockIdx.x) * kRows;
  const int r = int(threadIdx.x) / 32 * 16, lane = int(threadIdx.x) % 32, t = t0 + r + lane / 4;
  const int last = t0 + kRows < a.queries ? t0 + kRows : a.queries;
  const int tiles = (seen(a, last - 1) + step - 1) / step;
  const auto load = [&](int i) {
    buffer(i % 2).load(a, a.k, i * step, step, a.keys);
    buffer(2 + i % 2).load(a, a.v, i * step, step, a.keys);
    commit_copies();
  };
  q.load(a, a.q, t0, kRows, a.queries);
  d_o.load(a, a.d_o, t0, kRows, a.queries);
  load(0);
  const float scale = float(a.scale) * kLog2E;
  float lse[2], delta[2];
  int ends[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const bool exists = t + 8 * h < a.queries;
    const int64_t at = first_statistic(a) + t + 8 * h;
    lse[h] = exists ? static_cast<const float*>(a.lse)[at] * kLog2E : 0.0f;
    delta[h] = exists ? static_cast<const float*>(a.delta)[at] : 0.0f;
    ends[h] = exists ? seen(a, t + 8 * h) : 0;
  }
  const Dropout dropout(a);
  Result dq[width / 8] = {}, p[step / 8], ds[step / 8];
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) load(i + 1);
    i + 1 < tiles ? wait_copies<1>() : wait_copies<0>();
    __syncthreads();
    product_of_rows<step>(q, r, buffer(i % 2), p);
    product_of_rows<step>(d_o, r, buffer(2 + i % 2), ds);
    if (dropout.on) leave_out<step>(dropout, i * step, t, float(a.keep), ds);
#pragma unroll
    for (int n = 0; n < step / 8; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int key = i * step + n * 8 + lane % 4 * 2 + j % 2;
        const float e = exp2_fast(fmaf(p[n].x[j], scale, -lse[j / 2]));
        ds[n].x[j] = key < ends[j / 2] ? e * (ds[n].x[j] - delta[j / 2]) : 0.0f;
      }
    add_product<step>(ds, buffer(i % 2), dq);
    __syncthreads();
  }
  wait_copies<0>();
  __syncthreads();
  store_rows(a, a.dq, t0, a.queries, q, r, dq, float(a.scale), float(a.scale));
}

template <class T, int width>
__device__ void flash_grad_kv(const AttentionArgs& a) {
  using Rows = Tile<T, width>;
  constexpr int step = kStep<width>;
  T* shared = reinterpret_cast<T*>(dynamic_shared());
  const Rows k{shared}, v{shared + kRows * Rows::stride};
  const auto buffer = [&](int i) { return Rows{shared + (2 * kRows + i * step) * Rows::stride}; };
  // lse and delta of the queries of both buffers.
  __shared__ float statistics[2][2][step];
  const int s0 = int(blockIdx.x) * kRows, rank = int(threadIdx.x);
  const int r = rank / 32 * 16, lane = rank % 32, s = s0 + r + lane / 4;
  const int first = first_query(a, s0) / step, tiles = (a.queries + step - 1) / step;
  const auto load = [&](int i) {
    buffer(i % 2).load(a, a.q, i * step, step, a.queries);
    buffer(2 + i % 2).load(a, a.d_o, i * step, step, a.queries);
    commit_copies();
    if (rank >= step) return;
    const bool exists = i * step + rank < a.queries;
    const int64_t at = first_statistic(a) + i * step + rank;
    statistics[i % 2][0][rank] = exists ? static_cast<const float*>(a.lse)[at] * kLog2E : 0.0f;
    statistics[i % 2][1][rank] = exists ? static_cast<const float*>(a.delta)[at] : 0.0f;
  };
  k.load(a, a.k, s0, kRows, a.keys);
  v.load(a, a.v, s0, kRows, a.keys);
  load(first);
  const float scale = float(a.scale) * kLog2E;
  const int begins[2] = {first_query(a, s), first_query(a, s + 8)};
  const Dropout dropout(a);
  Result dk[width / 8] = {}, dv[width / 8] = {}, p[step / 8], ds[step / 8];
  for (int i = first; i < tiles; ++i) {
    if (i + 1 < tiles) load(i + 1);
    i + 1 < tiles ? wait_copies<1>() : wait_copies<0>();
    __syncthreads();
    product_of_rows<step>(k, r, buffer(i % 2), p);
    product_of_rows<step>(v, r, buffer(2 + i % 2), ds);
#pragma unroll
    for (int n = 0; n < step / 8; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int column = n * 8 + lane % 4 * 2 + j % 2, query = i * step + column;
        const bool sees = query >= begins[j / 2] && query < a.queries;
        const float e = exp2_fast(fmaf(p[n].x[j], scale, -statistics[i % 2][0][column]));
        const float weight = sees ? e : 0.0f;
        float keep = 1.0f;
        if (dropout.on) keep = dropout.leaves_out(query, s + j / 2 * 8) ? 0.0f : float(a.keep);
        p[n].x[j] = weight * keep;
        ds[n].x[j] = weight * (ds[n].x[j] * keep - statistics[i % 2][1][column]);
      }
    add_product<step>(p, buffer(2 + i % 2), dv);
    add_product<step>(ds, buffer(i % 2), dk);
    __syncthreads();
  }
  wait_copies<0>();
  __syncthreads();
  store_rows(a, a.dk, s0, a.keys, k, r, dk, float(a.scale), float(a.scale));
  store_rows(a, a.dv, s0, a.keys, v, r, dv, 1.0f, 1.0f);
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
