// SPDX-License-Identifier: Apache-2.0
//
// A team of threads that works on one row: staging, maxima, sums in the order of ops.h, results in
// packets of 16 bytes. Half a warp computes the 16 lanes of a block of a sum, so the prescribed
// order costs no time.
#pragma once

#include "fold_block.h"
#include "mma.h"
#include "packet.h"
#include "row_sum.h"
#include "rows.h"

namespace orr_cuda {

// exp of a number that comes from elements of type T. For 16-bit types an accuracy of 2^-20 is
// enough, and what is below 2^-126 may be 0.
template <class T>
__device__ inline Acc<T> exp_for(Acc<T> x) {
  if constexpr (sizeof(T) == 2)
    return exp2_fast(x * 1.44269504f);
  else
    return exp(x);
}

struct Team {
  int size, rank, index;  // the number of threads, which one this is, and which team of the block
  unsigned mask;          // the warp's threads that belong to the team
  char* shared;           // shared memory of the team
  int64_t row;

  __device__ explicit Team(const Rows& r)
      : size(r.team), rank(int(threadIdx.x) % r.team), index(int(threadIdx.x) / r.team) {
    mask = r.team >= 32 ? 0xffffffffu : 0xffffu << (threadIdx.x & 16);
    shared = dynamic_shared() + index * r.team_bytes;
    row = int64_t(blockIdx.x) * (blockDim.x / unsigned(r.team)) + index;
  }
  __device__ void sync() const {
    if (size <= 32)
      __syncwarp(mask);
    else
      __syncthreads();
  }
};

// Where the block's team number `team` stages the row at `from`, or a part of it, with the row's
// offset to a multiple of 16 bytes. REQUIRES: rows, or their parts, are staged.
template <class T>
__device__ T* place_of(const Rows& r, int team, int slot, const T* from) {
  const int shift = int(reinterpret_cast<uintptr_t>(from) & 15);
  return reinterpret_cast<T*>(dynamic_shared() + team * r.team_bytes + r.partial_bytes +
                              slot * r.slot_bytes + shift);
}

// Begins to copy n elements to that place. A thread's max_of_mine reads what it has copied itself.
template <class T>
__device__ void begin_stage(const Team& team, T* to, const T* from, int n) {
  constexpr int packet = Packet<T>::size;
  const int head = head_of(from, n), tail = n - (n - head) % packet;
#pragma unroll 4
  for (int c = head + team.rank * packet; c < tail; c += team.size * packet)
    copy_async(to + c, from + c, true);
  if (team.rank < head) to[team.rank] = from[team.rank];
  if (tail + team.rank < n) to[tail + team.rank] = from[tail + team.rank];
}

// Copies a row and returns the copy, or the row itself if rows are not staged. The caller must call
// team.sync() before it reads the copy.
template <class T>
__device__ const T* stage_row(const Team& team, const Rows& r, int slot, const T* from) {
  if (r.slot_bytes == 0) return from;
  T* const to = place_of(r, team.index, slot, from);
  begin_stage(team, to, from, r.columns);
  wait_copies();
  return to;
}

// The same of the team's row of x, whose rows are neighbours.
template <class T>
__device__ const T* stage(const Team& team, const Rows& r, int slot, const void* x) {
  return stage_row(team, r, slot, static_cast<const T*>(x) + team.row * r.columns);
}

__device__ inline int blocks_of(int n) { return (n + ORR_SUM_BLOCK - 1) / ORR_SUM_BLOCK; }

// Sums each block of term(c) for c in [0, n): block b into the partial sum before + b.
template <class A, class Term>
__device__ void sum_blocks(const Team& team, int before, int n, Term term) {
  A* partial = reinterpret_cast<A*>(team.shared) + before;
  for (int b = team.rank / 16; b < blocks_of(n); b += team.size / 16) {
    const int first = b * ORR_SUM_BLOCK, end = first + ORR_SUM_BLOCK;
    const A sum = block_fold<Sum, A>(first, end < n ? end : n, term);
    if (team.rank % 16 == 0) partial[b] = sum;
  }
}

// The sum of the partial sums of all blocks; every thread gets it.
template <class A>
__device__ A add_blocks(const Team& team, int blocks) {
  A* partial = reinterpret_cast<A*>(team.shared);
  team.sync();
  for (int step = 1; step < blocks; step *= 2) {
    for (int b = team.rank * 2 * step; b + step < blocks; b += team.size * 2 * step)
      partial[b] = plus(partial[b], partial[b + step]);
    team.sync();
  }
  const A sum = partial[0];
  team.sync();
  return sum;
}

// The row sum of term(c) for c in [0, n); every thread gets it.
template <class A, class Term>
__device__ A row_sum(const Team& team, int n, Term term) {
  if (team.size == 16) return block_fold<Sum, A>(0, n, term);
  sum_blocks<A>(team, 0, n, term);
  return add_blocks<A>(team, blocks_of(n));
}

// The largest of `top` and this thread's share of n elements, a NaN if there is one. REQUIRES:
// `top` is a value that an element can have.
template <class T>
__device__ Acc<T> max_of_mine(const Team& team, int n, const T* x, Acc<T> top) {
  // Elements of 16 bits are compared in pairs.
  using Pair = std::conditional_t<std::is_same_v<T, F16>, __half2, __nv_bfloat162>;
  using Words = Packet<std::conditional_t<sizeof(T) == 2, Pair, T>>;
  const int head = head_of(x, n), tail = n - (n - head) % Packet<T>::size;
  Packet<T> tops;
#pragma unroll
  for (T& each : tops.v) each = rounded<T>(top);
#pragma unroll 4
  for (int c = head + team.rank * Packet<T>::size; c < tail; c += team.size * Packet<T>::size) {
    Packet<T> p = *reinterpret_cast<const Packet<T>*>(x + c);
    Words &most = reinterpret_cast<Words&>(tops), &more = reinterpret_cast<Words&>(p);
#pragma unroll
    for (int j = 0; j < Words::size; ++j) most.v[j] = larger(most.v[j], more.v[j]);
  }
#pragma unroll
  for (const T each : tops.v) top = larger(top, get(each));
  if (team.rank < head) top = larger(top, get(x[team.rank]));
  return tail + team.rank < n ? larger(top, get(x[tail + team.rank])) : top;
}

// The largest that any thread of the team has; every thread gets it.
template <class A>
__device__ A max_of_all(const Team& team, A x) {
  for (int d = (team.size < 32 ? team.size : 32) / 2; d > 0; d /= 2)
    x = larger(x, __shfl_xor_sync(team.mask, x, d));
  if (team.size <= 32) return x;
  A* partial = reinterpret_cast<A*>(team.shared);
  if (team.rank % 32 == 0) partial[team.rank / 32] = x;
  __syncthreads();
  x = partial[0];
  for (int i = 1; i < team.size / 32; ++i) x = larger(x, partial[i]);
  __syncthreads();
  return x;
}

template <class T, class F, class... Values>
__device__ void map_packet(T* to, int c, F f, const Values&... from) {
  Packet<Acc<T>, Packet<T>::size> result;
#pragma unroll
  for (int j = 0; j < Packet<T>::size; ++j) result.v[j] = f(c + j, from.v[j]...);
  *reinterpret_cast<Packet<T>*>(to + c) = rounded<T>(result);
}

// Computes to[c] = f(c, from[c]...) for c in [0, n), in packets if the first row and `to` have the
// same offset to a multiple of 16 bytes. `to` may be one of the rows.
template <class T, class F, class... More>
__device__ void map_row(const Team& team, int n, T* to, F f, const T* from, const More*... more) {
  const auto a = reinterpret_cast<uintptr_t>(from), b = reinterpret_cast<uintptr_t>(to);
  const int head = (a ^ b) & 15 ? n : head_of(to, n);
  const int tail = n - (n - head) % Packet<T>::size;
  for (int c = team.rank; c < head; c += team.size)
    to[c] = rounded<T>(f(c, get(from[c]), get(more[c])...));
  for (int c = head + team.rank * Packet<T>::size; c < tail; c += team.size * Packet<T>::size)
    map_packet(to, c, f, values(*reinterpret_cast<const Packet<T>*>(from + c)),
               values(load_packet(more + c))...);
  for (int c = tail + team.rank; c < n; c += team.size)
    to[c] = rounded<T>(f(c, get(from[c]), get(more[c])...));
}

}  // namespace orr_cuda
