// SPDX-License-Identifier: Apache-2.0
//
// Which keys a query sees, which weights dropout sets to 0, and where the rows of a head lie.
#pragma once

#include <orrery/ops.h>

#include "attention.h"
#include "kernel.h"
#include "packet.h"

namespace orr_cuda {

__device__ inline int within(int n, int all) { return n < 0 ? 0 : n < all ? n : all; }

// The keys that query t sees: [first_key, end_key).
__device__ inline int first_key(const AttentionArgs& a, int t) {
  return within(t + a.first, a.keys);
}
__device__ inline int end_key(const AttentionArgs& a, int t) { return within(t + a.last, a.keys); }
// The queries that see key s: [first_query, end_query).
__device__ inline int first_query(const AttentionArgs& a, int s) {
  return within(s - a.last + 1, a.queries);
}
__device__ inline int end_query(const AttentionArgs& a, int s) {
  return within(s - a.first + 1, a.queries);
}

// The head of queries that the block works on. Where its rows are keys it goes from reader to
// reader, and keeps the number in shared memory: registers are scarce there.
__device__ inline volatile int& reader() {
  __shared__ int head;
  return head;
}
template <bool of_keys>
__device__ int head_of_queries() {
  if constexpr (of_keys)
    return reader();
  else
    return int(blockIdx.y);
}

// Row `row` of a head, which counts from the first sample's first.
template <class T>
__device__ T* head_row(const Heads& x, int head, int row) {
  const int64_t b = unsigned(head) / unsigned(x.heads), h = unsigned(head) % unsigned(x.heads);
  return static_cast<T*>(x.data) + b * x.batch + h * x.head + row * x.row;
}

// The score of query t and key s with the bias, if there is one, which is of T.
template <class T, class A>
__device__ A biased(const AttentionArgs& a, int head, int t, int s, A score) {
  return a.bias.data ? score + get(head_row<const T>(a.bias, head, t)[s]) : score;
}

// The index at which the statistics of a head of queries begin.
__device__ inline int64_t first_statistic(const AttentionArgs& a, int head) {
  return int64_t(head) * a.queries;
}

// The dropout of a head of queries.
struct Dropout {
  __device__ Dropout(const AttentionArgs& a, int head)
      : on(a.seed != nullptr), keys(a.keys), id(a.rng_id), rate(a.dropout) {
    if (!on) return;
    const int64_t b = unsigned(head) / unsigned(a.heads), h = unsigned(head) % unsigned(a.heads);
    seed = uint64_t(*a.seed), step = uint32_t(*a.step);
    first = uint64_t(*a.base + (a.first_row + (b * a.head_total + h) * a.queries) * keys);
  }

  // Whether the weight of key s for query t counts as 0.
  __device__ bool leaves_out(int t, int s) const {
    return orr_uniform(seed, id, step, element(t, s)) < rate;
  }

  bool on;
  int64_t keys;
  uint64_t seed = 0, first = 0;
  uint32_t id, step = 0;
  float rate;

 private:
  __device__ uint64_t element(int t, int s) const { return first + uint64_t(t * keys + s); }
};

// The part of the dot product of two rows that a lane of `lanes` has: eight neighbours at a time,
// wherever the rows lie. REQUIRES: if `packets`, 16-bit rows of a multiple of 8 elements, aligned
// to 16 bytes.
template <class T, class A>
__device__ A part_of_dot(const T* x, const T* y, int depth, int lane, int lanes, bool packets) {
  constexpr int size = 8;
  A sum = 0;
  for (int c = lane * size; c < depth; c += lanes * size) {
    if (packets) {
      const Packet<T> a = load_packet(x + c), b = load_packet(y + c);
#pragma unroll
      for (int j = 0; j < Packet<T>::size; ++j) sum += get(a.v[j]) * get(b.v[j]);
    } else {
      for (int j = c; j < c + size && j < depth; ++j) sum += get(x[j]) * get(y[j]);
    }
  }
  return sum;
}

// The sum of do * o over row t of the block's head, which the first of `lanes` neighbouring threads
// writes to delta; 0 beyond the queries. All lanes of a warp must call it.
template <class T>
__device__ Acc<T> delta_of(const AttentionArgs& a, int t, int lanes) {
  using A = Acc<T>;
  const int lane = int(threadIdx.x) % lanes, row = t < a.queries ? t : 0, head = int(blockIdx.y);
  A sum = part_of_dot<T, A>(head_row<const T>(a.d_o, head, row), head_row<const T>(a.o, head, row),
                            a.depth, lane, lanes, a.packets);
  for (int d = lanes / 2; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (t >= a.queries) return A(0);
  if (lane == 0) static_cast<A*>(a.delta)[first_statistic(a, head) + t] = sum;
  return sum;
}

}  // namespace orr_cuda
