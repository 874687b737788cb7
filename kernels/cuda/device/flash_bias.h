// SPDX-License-Identifier: Apache-2.0
//
// The bias of attention on tensor cores: which tiles of it the block's rows have to see, and their
// elements in shared memory. Tiles that are -infinity throughout are left out: their weights are 0,
// so that they would add 0 to each sum. Tiles that are 0 throughout are not read.
#pragma once

#include "flash_tile.h"

namespace orr_cuda {

// Tiles of `step` keys go by the block's 64 queries, or of queries by its keys. Without a bias all
// tiles are seen.
template <class T, bool biased, bool of_keys, int step>
class Bias {
 public:
  enum { rows = of_keys ? step : kFlashRows, columns = of_keys ? kFlashRows : step };
  using Scores = Tile<T, rows, 64>;
  // The shared memory that it takes, in elements.
  enum { elements = biased ? 2 * Scores::elements : 0 };

  // The block's rows are those from `own` on; tiles [first, end) of a head of queries go by.
  __device__ Bias(const AttentionArgs& a, int own, int first, int end, T* shared)
      : a_(a), shared_(shared), own_(own), end_(end) {
    if constexpr (biased) look(first & ~31);
  }

  // The first tile from i on of which something is seen, `end` if there is none. i is `first`, or
  // follows the tile that was found last. To be called by all threads.
  __device__ int next(int i) {
    if constexpr (biased) {
      while (i < end_) {
        if (unsigned(i) % 32 == 0) look(i);
        const uint32_t left = seen_ >> unsigned(i) % 32;
        if (left) return i + __ffs(int(left)) - 1;
        i = (i | 31) + 1;
      }
      return end_;
    } else {
      return i;
    }
  }

  // Starts to load the tile that next() has found last.
  __device__ void load(int i, int turn) {
    if constexpr (biased) {
      const uint32_t open = open_ >> unsigned(i) % 32 & 1;
      turns_ = (turns_ & ~(1u << turn)) | open << turn;
      if (!open) load_scores(of_keys ? i * step : own_, of_keys ? own_ : i * step, turn);
    }
  }

  // Products of this warp's rows become scores in base 2: scaled, with the bias. A tile of zeros is
  // added as well, so that bits do not depend on what else is in a tile.
  template <int n>
  __device__ void add(int turn, float scale, Result (&s)[n]) const {
    if constexpr (biased) {
      const bool open = turns_ >> turn & 1;
      const int r = int(threadIdx.x) / 32 * 16;
#pragma unroll
      for (int j = 0; j < n / 2; ++j) {
        OperandA x = {};
        if (!open) x = of_keys ? tile(turn).left_columns(j * 16, r) : tile(turn).left(r, j * 16);
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          const auto both = values(reinterpret_cast<const Packet<T, 2>&>(x.x[w]));
          float* const to = &s[2 * j + w / 2].x[w % 2 * 2];
          to[0] = fmaf(to[0], scale, both.v[0] * kLog2E);
          to[1] = fmaf(to[1], scale, both.v[1] * kLog2E);
        }
      }
    }
  }

 private:
  __device__ Scores tile(int turn) const { return {shared_ + turn * Scores::elements}; }

  // Gets to know the 32 tiles from `first` on.
  __device__ void look(int first) {
    const int i = first + int(threadIdx.x) % 32, at = i * step / kSeenRows, own = own_ / kSeenRows;
    int seen = kHidden;
    if (i < end_)
      seen = head_row<const unsigned char>(a_.seen, head_of_queries<of_keys>(),
                                           of_keys ? at : own)[of_keys ? own : at];
    seen_ = __ballot_sync(0xffffffffu, seen != kHidden);
    open_ = __ballot_sync(0xffffffffu, seen == kOpen);
  }

  // A thread has one packet of every apart-th row.
  __device__ void load_scores(int t, int s, int turn) const {
    constexpr int packets = columns / 8, apart = kFlashThreads / packets;
    const int row = int(threadIdx.x) / packets, column = int(threadIdx.x) % packets * 8;
    const int rows_left = a_.queries - t - row, columns_left = a_.keys - s - column;
    const T* const from =
        head_row<const T>(a_.bias, head_of_queries<of_keys>(), t + row) + s + column;
    T* const to = tile(turn).packet(row, column);
    if (a_.bias_packets) {
#pragma unroll
      for (int j = 0; j < rows / apart; ++j) {
        const bool present = j * apart < rows_left && columns_left > 0;
        copy_async(to + j * apart * 64, from + j * apart * a_.bias.row, present);
      }
    } else {
#pragma unroll 8
      for (int e = 0; e < rows / apart * 8; ++e) {
        const int j = e / 8 * apart;
        const bool present = j < rows_left && e % 8 < columns_left;
        to[j * 64 + e % 8] = present ? from[j * a_.bias.row + e % 8] : T(0.0f);
      }
    }
  }

  const AttentionArgs& a_;
  T* shared_;
  int own_, end_;
  uint32_t seen_ = 0, open_ = 0;  // of the 32 tiles that are known, a bit for each
  uint32_t turns_ = 0;            // whether the tile of turn 0, of turn 1 is open
};

}  // namespace orr_cuda
