// SPDX-License-Identifier: Apache-2.0
//
// The tensor-core half of kernels/cuda/device/mma.h for fibers: the layouts are those that the PTX
// manual gives for ldmatrix and mma.m16n8k16.
#pragma once

#include "words.h"

namespace orr_cuda {

// The rows' addresses of all lanes.
struct RowsOfLanes {
  explicit RowsOfLanes(const void* row)
      : all(static_cast<const char*>(::emulator::exchange(0xffffffffu, &row, sizeof row, 0))) {}
  const char* operator[](int lane) const {
    const char* row;
    std::memcpy(&row, all + lane * ::emulator::kShown, sizeof row);
    return row;
  }
  const char* all;
};

// The word that lane l gets: columns 2*(l%4) and the next of row l/4.
inline void load_matrices(uint32_t* x, const void* row) {
  const int lane = ::emulator::self().lane;
  const RowsOfLanes rows(row);
  for (int i = 0; i < 4; ++i) std::memcpy(&x[i], rows[i * 8 + lane / 4] + lane % 4 * 4, 4);
}

inline void load_transposed(uint32_t* x, const void* row) {
  const int lane = ::emulator::self().lane;
  const RowsOfLanes rows(row);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 2; ++j)
      std::memcpy(reinterpret_cast<char*>(&x[i]) + 2 * j,
                  rows[i * 8 + lane % 4 * 2 + j] + lane / 4 * 2, 2);
}

template <class T>
void widen(uint32_t word, float* to) {
  T both[2];
  std::memcpy(static_cast<void*>(both), &word, 4);
  to[0] = get(both[0]);
  to[1] = get(both[1]);
}

// Every lane shows its elements; row r of the left operand is with lanes 4*(r%8) and the next
// three, column n of the right one with lanes 4*n and the next three.
template <class T>
void multiply(Result& c, const OperandA& a, const OperandB& b) {
  struct Shown {
    float left[4][2], right[2][2];
  };
  Shown mine;
  for (int i = 0; i < 4; ++i) widen<T>(a.x[i], mine.left[i]);
  for (int i = 0; i < 2; ++i) widen<T>(b.x[i], mine.right[i]);
  const int lane = ::emulator::self().lane;
  const auto* all =
      static_cast<const char*>(::emulator::exchange(0xffffffffu, &mine, sizeof mine, 0));
  const auto shown_by = [&](int of) {
    return reinterpret_cast<const Shown*>(all + of * ::emulator::kShown);
  };
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 * 4, column = (lane % 4 * 2 + i % 2) * 4;
    for (int half = 0; half < 2; ++half)
      for (int q = 0; q < 4; ++q)
        for (int e = 0; e < 2; ++e)
          c.x[i] +=
              shown_by(row + q)->left[i / 2 + half * 2][e] * shown_by(column + q)->right[half][e];
  }
}

inline void copy_async(void* to, const void* from, bool present) {
  ::emulator::copy_async(to, from, present ? 16 : 0);
}
inline void commit_copies() { ::emulator::commit_copies(); }
template <int pending>
void wait_copies() {
  ::emulator::wait_copies(pending);
}

inline float exp2_fast(float x) { return std::exp2(x); }
inline float max_or_nan(float x, float y) { return x >= y || x != x ? x : y; }

}  // namespace orr_cuda
