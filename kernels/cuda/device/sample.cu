// SPDX-License-Identifier: Apache-2.0
//
// Ops that choose from rows: argmax, topk, categorical. A NaN counts as the largest.
#include "row_team.h"
#include "sample.h"

namespace orr_cuda {
namespace {

// An element and where it stands; index -1: none.
template <class A>
struct Best {
  A value;
  int index;
};

// Whether a comes before b in descending order, ties by index.
template <class A>
__device__ bool before(const Best<A>& a, const Best<A>& b) {
  if (b.index < 0 || a.index < 0) return a.index >= 0;
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan;
  if (!a_nan && a.value != b.value) return a.value > b.value;
  return a.index < b.index;
}

template <class A>
__device__ Best<A> better(const Best<A>& a, const Best<A>& b) {
  return before(a, b) ? a : b;
}

// The best of the whole team's; every thread has it.
template <class A>
__device__ Best<A> best_of_team(const Team& team, Best<A> mine) {
  for (int d = (team.size < 32 ? team.size : 32) / 2; d > 0; d /= 2) {
    const Best<A> other = {__shfl_xor_sync(team.mask, mine.value, d),
                           __shfl_xor_sync(team.mask, mine.index, d)};
    mine = better(mine, other);
  }
  if (team.size <= 32) return mine;
  __shared__ A value[kRowThreads / 32];
  __shared__ int index[kRowThreads / 32];
  __syncthreads();
  if (team.rank % 32 == 0) value[team.rank / 32] = mine.value, index[team.rank / 32] = mine.index;
  __syncthreads();
  mine = {value[0], index[0]};
  for (int i = 1; i < team.size / 32; ++i) mine = better(mine, Best<A>{value[i], index[i]});
  return mine;
}

// The best element that comes after `last`, or the best of all.
template <class T>
__device__ Best<Acc<T>> next_best(const Team& team, int n, const T* x, const Best<Acc<T>>& last) {
  using A = Acc<T>;
  Best<A> mine = {A(0), -1};
  for (int c = team.rank; c < n; c += team.size) {
    const Best<A> here = {get(x[c]), c};
    if ((last.index < 0 || before(last, here)) && before(here, mine)) mine = here;
  }
  return best_of_team(team, mine);
}

template <class T>
__device__ void topk(const BestArgs& a) {
  const Team team(a.rows);
  if (team.row >= a.rows.rows) return;
  const int n = a.rows.columns;
  const T* x = stage_row(team, a.rows, 0, static_cast<const T*>(a.x) + team.row * a.step);
  team.sync();
  Best<Acc<T>> last = {Acc<T>(0), -1};
  for (int j = 0; j < a.k; ++j) {
    last = next_best(team, n, x, last);
    if (team.rank != 0) continue;
    a.index[team.row * a.k + j] = last.index;
    if (a.value) static_cast<T*>(a.value)[team.row * a.k + j] = x[last.index];
  }
}

// The sums are of doubles in order, so that one thread adds what the others prepare. Exponentials
// are those of f64, rounded: the draw is the reference's.
template <class T>
__device__ void categorical(const CategoricalArgs& a) {
  using A = Acc<T>;
  __shared__ double term[kCategoricalThreads];
  const Team team(a.rows);
  const int n = a.rows.columns, rank = team.rank;
  const T* x = static_cast<const T*>(a.logits) + team.row * n;
  const A top = max_of_all(team, max_of_mine(team, n, x, A(-HUGE_VALF)));
  // The first pass finds the total, the second where the running sum exceeds its share.
  double sum = 0, target = 0;
  int chosen = -1;
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1)
      target = sum * double(orr_uniform(uint64_t(*a.seed), a.rng_id, uint32_t(*a.step),
                                        uint64_t(*a.base) + uint64_t(team.row)));
    sum = 0;
    for (int first = 0; first < n; first += kCategoricalThreads) {
      __syncthreads();
      if (first + rank < n) term[rank] = double(A(exp(double(get(x[first + rank]) - top))));
      __syncthreads();
      if (rank != 0 || chosen >= 0) continue;
      const int count = n - first < kCategoricalThreads ? n - first : kCategoricalThreads;
      for (int i = 0; i < count; ++i) {
        sum += term[i];
        if (pass == 1 && chosen < 0 && sum > target) chosen = first + i;
      }
    }
  }
  if (rank == 0) a.y[team.row] = chosen < 0 ? n - 1 : chosen;
}

}  // namespace

ORR_NUMBER_KERNELS(topk, kRowThreads, BestArgs)
ORR_REAL_KERNELS(categorical, kCategoricalThreads, CategoricalArgs)

}  // namespace orr_cuda
