// SPDX-License-Identifier: Apache-2.0
//
// The gradient of attention on tensor cores. One launch has a block for some queries and computes
// delta and dq, another has one for some keys and computes dk and dv. Scores are computed twice,
// but every sum has one order and needs no atomics. Rows are queries in the first launch, keys in
// the second.
#include "flash_bias.h"

namespace orr_cuda {
namespace {

// Rows that go by at a time.
template <int width>
constexpr int kStep = flash_step(width);

// Columns of a gradient that a block sums: of heads of more than 128 elements one part of them.
template <int width, bool biased, bool of_keys>
constexpr int kColumns = width / flash_parts(width, biased, of_keys);

// Whether a block of keys goes on to the next reader.
template <int width, bool biased>
constexpr bool kGroups = flash_groups(width, biased);

struct Statistic {
  float lse, delta;  // lse in base 2
};

// lse of a query in base 2. 0 beyond the queries, and where one sees no key, so that scores of
// -infinity less it are not NaN.
__device__ float lse_of(const AttentionArgs& a, int head, int t) {
  if (t >= a.queries) return 0.0f;
  const float lse = static_cast<const float*>(a.lse)[first_statistic(a, head) + t];
  return lse == -HUGE_VALF ? 0.0f : lse * kLog2E;
}

__device__ Statistic statistic_of(const AttentionArgs& a, int head, int t) {
  const auto* delta = static_cast<const float*>(a.delta) + first_statistic(a, head);
  return {lse_of(a, head, t), t < a.queries ? delta[t] : 0.0f};
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

// Stores ds, of this lane's queries t and t + 8 and the keys of a tile from `first` on, as the
// gradient of the bias. What a bias gets where nothing is seen is +0.
template <class T, int columns>
__device__ void store_slopes(const AttentionArgs& a, int t, int first,
                             const Result (&ds)[columns]) {
  const int s0 = lane_column(first);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    if (t + 8 * h >= a.queries) return;
    T* const row = head_row<T>(a.d_bias, int(blockIdx.y), t + 8 * h);
#pragma unroll
    for (int n = 0; n < columns; ++n) {
      const int s = s0 + n * 8;
      const float low = ds[n].x[2 * h] + 0.0f, high = ds[n].x[2 * h + 1] + 0.0f;
      if (a.bias_words && s < a.keys) {
        *reinterpret_cast<uint32_t*>(row + s) = pack(T(), low, high);
      } else {
        if (s < a.keys) row[s] = rounded<T>(low);
        if (s + 1 < a.keys) row[s + 1] = rounded<T>(high);
      }
    }
  }
}

// The gradient of the bias is 0 for the block's queries and the keys [first, end), of which nothing
// is seen.
template <class T>
__device__ void clear_slopes(const AttentionArgs& a, int t0, int first, int end) {
  const int lane = int(threadIdx.x) % 32;
#pragma unroll 1
  for (int t = t0 + int(threadIdx.x) / 32; t < t0 + kFlashRows && t < a.queries; t += 4) {
    T* const row = head_row<T>(a.d_bias, int(blockIdx.y), t);
#pragma unroll 1
    for (int s = first + lane; s < end && s < a.keys; s += 32) row[s] = T(0.0f);
  }
}

template <class T, int width, bool biased>
__device__ void flash_grad_q(const AttentionArgs& a) {
  constexpr int step = kStep<width>, columns = kColumns<width, biased, false>;
  using Queries = Tile<T, kFlashRows, width>;
  using Keys = Tile<T, step, width>;
  T* shared = reinterpret_cast<T*>(tile_memory());
  const Queries q{shared}, d_o{shared + Queries::elements};
  const auto buffer = [&](int i) {
    return Keys{shared + 2 * Queries::elements + i * Keys::elements};
  };
  const int t0 = int(gridDim.x - 1 - blockIdx.x) * kFlashRows;
  const int column = int(blockIdx.z) * columns;
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
  Loader<T, kFlashRows, width, 2>(a, {a.q, a.d_o}, int(blockIdx.y), t0, a.queries).load({q, d_o});
  int i = bias.next(first);
  if (!biased || i < tiles) load(i, i - first, 0);
  const bool stores = biased && a.d_bias.data && column == 0;
  if (stores) clear_slopes<T>(a, t0, 0, i < tiles ? i * step : a.keys);
  const float scale = float(a.scale) * kLog2E;
  const Statistic of[2] = {{lse_of(a, int(blockIdx.y), t), delta_of<T>(a, t, 4)},
                           {lse_of(a, int(blockIdx.y), t + 8), delta_of<T>(a, t + 8, 4)}};
  Result dq[columns / 8] = {}, p[step / 8], ds[step / 8];
  for (int turn = 0; i < tiles; turn ^= 1) {
    await_tile();
    const uint32_t left = a.seed ? left_out<false, step / 8>(a, t, i * step) : 0;
    begin_products();
    product_of_rows(q, buffer(turn), p);
    end_batch();
    product_of_rows(d_o, buffer(2 + turn), ds);
    end_batch();
    const int next = bias.next(i + 1);
    if (next < tiles) load(next, next - i - 1, turn ^ 1);
    await_products<1>(p);
    bias.add(turn, scale, p);
    if (i >= whole) mask_keys_behind(a, i * step, t, p);
    if (a.window) mask_keys_before(a, i * step, t, p);
    to_weights(p, biased ? 1.0f : scale, [&](int, int j) { return of[j / 2].lse; });
    await_slopes(a, left, ds);
    to_slopes(ds, p, [&](int, int j) { return of[j / 2].delta; });
    if (stores) {
      store_slopes<T>(a, t, i * step, ds);
      clear_slopes<T>(a, t0, (i + 1) * step, next < tiles ? next * step : a.keys);
    }
    const auto slopes = as_operands<T>(ds);
    begin_products();
    add_product(slopes, buffer(turn).template from_column<columns>(column), dq);
    end_products(dq);
    i = next;
  }
  wait_copies();
  __syncthreads();
  store_rows(a, a.dq, t0, a.queries, q.template from_column<columns>(0), dq, float(a.scale),
             float(a.scale), column);
}

// The statistics of the queries of two tiles, by turns, in shared memory. A thread reads those of
// one query, and writes them when it has computed something else meanwhile.
template <int step>
struct Statistics {
  float* at;

  __device__ float* of(int turn) const { return at + turn * 2 * step; }
  __device__ Statistic read(const AttentionArgs& a, int tile) const {
    return statistic_of(a, reader(),
                        int(threadIdx.x) < step ? tile * step + int(threadIdx.x) : a.queries);
  }
  __device__ void write(int turn, Statistic x) const {
    if (int(threadIdx.x) >= step) return;
    of(turn)[threadIdx.x] = x.lse, of(turn)[step + threadIdx.x] = x.delta;
  }
};

template <class T, int width, bool biased>
__device__ void flash_grad_kv(const AttentionArgs& a) {
  constexpr int step = kStep<width>, columns = kColumns<width, biased, true>;
  using Keys = Tile<T, kFlashRows, width>;
  using Queries = Tile<T, step, width>;
  using Scores = Bias<T, biased, true, step>;
  T* shared = reinterpret_cast<T*>(tile_memory());
  const Keys k{shared}, v{shared + Keys::elements};
  const auto buffer = [&](int i) {
    return Queries{shared + 2 * Keys::elements + i * Queries::elements};
  };
  const Statistics<step> statistics{reinterpret_cast<float*>(buffer(4).at + Scores::elements)};
  const int s0 = int(blockIdx.x) * kFlashRows, column = int(blockIdx.z) * columns;
  const int r = int(threadIdx.x) / 32 * 16, s = s0 + r + int(threadIdx.x) % 32 / 4;
  __shared__ volatile int first;  // the first tile, for each reader; as reader(), in no register
  first = first_query(a, s0) / step;
  const int tiles = (end_query(a, s0 + kFlashRows - 1) + step - 1) / step;
  const int hides = first_query(a, s0 + r + 15);  // queries that stand before keys of this warp
  Loader<T, kFlashRows, width, 2>(a, {a.k, a.v}, int(blockIdx.y), s0, a.keys).load({k, v});
  const float scale = float(a.scale) * kLog2E;
  Result dk[columns / 8] = {}, dv[columns / 8] = {}, p[step / 8], ds[step / 8];
  reader() = int(blockIdx.y) * a.readers;
  bool more = true;
#pragma unroll 1
  while (more) {
    __syncthreads();  // all know the reader, and none reads what the last one has left
    const int begin = first;
    Scores bias(a, s0, begin, tiles, buffer(4).at);
    int i = bias.next(begin);
    Loader<T, step, width, 2> loader(a, {a.q, a.d_o}, reader(), i * step, a.queries);
    const auto load = [&](int at, int skipped, int turn) {
      loader.skip(skipped);
      loader.load({buffer(turn), buffer(2 + turn)});
      bias.load(at, turn);
    };
    if (i < tiles) load(i, 0, 0);
    statistics.write(0, statistics.read(a, i));
    for (int turn = 0; i < tiles; turn ^= 1) {
      await_tile();
      const int next = bias.next(i + 1);
      const Statistic of_next = statistics.read(a, next);
      const uint32_t left = a.seed ? left_out<true, step / 8>(a, s, i * step) : 0;
      begin_products();
      product_of_rows(k, buffer(turn), p);
      end_batch();
      product_of_rows(v, buffer(2 + turn), ds);
      end_batch();
      if (next < tiles) load(next, next - i - 1, turn ^ 1);
      await_products<1>(p);
      bias.add(turn, scale, p);
      if (i * step < hides) {
        const int t = lane_column(i * step);
        const int begins[2] = {first_query(a, s) - t, first_query(a, s + 8) - t};
        mask([&](int column, int h) { return column < begins[h]; }, p);
      }
      if (a.window) {
        const int t = lane_column(i * step);
        const int ends[2] = {end_query(a, s) - t, end_query(a, s + 8) - t};
        mask([&](int column, int h) { return column >= ends[h]; }, p);
      }
      const float *lse = statistics.of(turn) + lane_column(0), *delta = lse + step;
      to_weights(p, biased ? 1.0f : scale, [=](int n, int j) { return lse[n * 8 + j % 2]; });
      statistics.write(turn ^ 1, of_next);
      await_slopes(a, left, ds);
      to_slopes(ds, p, [=](int n, int j) { return delta[n * 8 + j % 2]; });
      if (a.seed) leave_out(left, 1.0f, p);
      const auto weights = as_operands<T>(p), slopes = as_operands<T>(ds);
      begin_products();
      add_product(weights, buffer(2 + turn).template from_column<columns>(column), dv);
      add_product(slopes, buffer(turn).template from_column<columns>(column), dk);
      end_products(dv, dk);
      i = next;
    }
    const int next_reader = reader() + 1;
    __syncthreads();
    reader() = next_reader;
    more = kGroups<width, biased> && next_reader % a.readers > 0;
  }
  wait_copies();
  __syncthreads();
  store_rows(a, a.dk, s0, a.keys, k.template from_column<columns>(0), dk, float(a.scale),
             float(a.scale), column);
  store_rows(a, a.dv, s0, a.keys, v.template from_column<columns>(0), dv, float(a.keep),
             float(a.keep), column);
}

}  // namespace

ORR_FLASH(flash_grad_q, 64)
ORR_FLASH(flash_grad_q, 128)
ORR_FLASH(flash_grad_kv, 64)
ORR_FLASH(flash_grad_kv, 128)

// Of heads as large as these, one block has all the registers that it wants.
#undef ORR_BLOCKS
#define ORR_BLOCKS(threads) 1
ORR_FLASH(flash_grad_q, 256)
ORR_FLASH(flash_grad_kv, 256)

}  // namespace orr_cuda
