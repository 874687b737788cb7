// SPDX-License-Identifier: Apache-2.0
//
// attention on tensor cores. A warp keeps the sums of 16 queries in registers, and goes over keys
// and values some at a time, while the next ones are loaded. Probabilities are rounded to the
// element type for their product with the values; their sum is not rounded.
#include "flash_bias.h"

namespace orr_cuda {
namespace {

constexpr float kLn2 = 0.693147181f;

// Keys that go by at a time.
template <int width>
constexpr int kStep = flash_keys(width);

// By how much scores in base 2 may exceed the base that they are taken relative to. Sums that need
// no other base need no rescaling.
constexpr float kSlack = 8;

// Two rows of a lane: the base, and this lane's share of the running sum.
struct Running {
  float base[2] = {-HUGE_VALF, -HUGE_VALF};
  float sum[2] = {0, 0};
};

// Scores to exp2(scale * score - base), and the sums so far to a new base, the maximum, if a score
// needs one. Scores that are NaN make the sums NaN.
template <int columns, int width>
__device__ void soften(Running& run, float scale, Result (&s)[columns], Result (&o)[width]) {
  float factor[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    float top = fmaxf(s[0].x[2 * h], s[0].x[2 * h + 1]);
#pragma unroll
    for (int n = 1; n < columns; ++n) top = fmaxf(top, fmaxf(s[n].x[2 * h], s[n].x[2 * h + 1]));
    top = fold_row(top, [](float x, float y) { return fmaxf(x, y); }) * scale;
    const float base = top > run.base[h] + kSlack ? top : run.base[h];
    const float minus = base == -HUGE_VALF ? 0.0f : -base;
    factor[h] = exp2_fast(run.base[h] + minus);
    run.base[h] = base;
    run.sum[h] *= factor[h];
#pragma unroll
    for (int n = 0; n < columns; ++n)
#pragma unroll
      for (int i = 2 * h; i < 2 * h + 2; ++i)
        run.sum[h] += s[n].x[i] = exp2_fast(fmaf(s[n].x[i], scale, minus));
  }
  if (factor[0] == 1.0f && factor[1] == 1.0f) return;
#pragma unroll
  for (int n = 0; n < width; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) o[n].x[i] *= factor[i / 2];
}

// Writes lse of this lane's queries t and t + 8. Returns the factors of their outputs in `inverse`.
__device__ void finish_rows(const AttentionArgs& a, const Running& run, int t, float* inverse) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const float sum = fold_row(run.sum[h], [](float x, float y) { return x + y; });
    inverse[h] = sum == 0.0f ? 0.0f : float(a.keep) / sum;
    if (threadIdx.x % 4 == 0 && t + 8 * h < a.queries)
      static_cast<float*>(a.lse)[first_statistic(a, int(blockIdx.y)) + t + 8 * h] =
          run.base[h] * kLn2 + logf(sum);
  }
}

template <class T, int width, bool biased>
__device__ void flash(const AttentionArgs& a) {
  constexpr int step = kStep<width>;
  using Queries = Tile<T, kFlashRows, width>;
  using Keys = Tile<T, step, width>;
  T* shared = reinterpret_cast<T*>(tile_memory());
  const Queries q{shared};
  const auto buffer = [&](int i) { return Keys{shared + Queries::elements + i * Keys::elements}; };
  const int t0 = int(gridDim.x - 1 - blockIdx.x) * kFlashRows;  // the longest rows first
  const int r = int(threadIdx.x) / 32 * 16, t = t0 + r + int(threadIdx.x) % 32 / 4;
  const int last = t0 + kFlashRows < a.queries ? t0 + kFlashRows : a.queries;
  const int first = first_key(a, t0) / step;
  const int tiles = (end_key(a, last - 1) + step - 1) / step;
  const int whole = end_key(a, t0 + r) / step;  // tiles behind whose last key this warp sees
  Bias<T, biased, false, step> bias(a, t0, first, tiles, buffer(4).at);
  Loader<T, step, width, 2> loader(a, {a.k, a.v}, int(blockIdx.y) / a.readers, first * step,
                                   a.keys);
  const auto load = [&](int i, int skipped, int turn) {
    loader.skip(skipped);
    loader.load({buffer(turn), buffer(2 + turn)});
    bias.load(i, turn);
  };
  Loader<T, kFlashRows, width, 1>(a, {a.q}, int(blockIdx.y), t0, a.queries).load({q});
  int i = bias.next(first);
  if (!biased || i < tiles) load(i, i - first, 0);
  const float scale = float(a.scale) * kLog2E;
  Running run;
  Result o[width / 8] = {}, s[step / 8];
  for (int turn = 0; i < tiles; turn ^= 1) {
    await_tile();
    const uint32_t left = a.seed ? left_out<false, step / 8>(a, t, i * step) : 0;
    begin_products();
    product_of_rows(q, buffer(turn), s);
    end_batch();
    const int next = bias.next(i + 1);
    if (next < tiles) load(next, next - i - 1, turn ^ 1);
    await_products<0>(s);
    bias.add(turn, scale, s);
    if (i >= whole) mask_keys_behind(a, i * step, t, s);
    if (a.window) mask_keys_before(a, i * step, t, s);
    soften(run, biased ? 1.0f : scale, s, o);
    if (a.seed) leave_out(left, 1.0f, s);
    const auto weights = as_operands<T>(s);
    begin_products();
    add_product(weights, buffer(2 + turn), o);
    end_products(o);
    i = next;
  }
  wait_copies();
  float inverse[2];
  finish_rows(a, run, t, inverse);
  __syncthreads();
  store_rows(a, a.o, t0, a.queries, q, o, inverse[0], inverse[1]);
}

}  // namespace

ORR_FLASH(flash, 64)
ORR_FLASH(flash, 128)
ORR_FLASH(flash, 256)

}  // namespace orr_cuda
