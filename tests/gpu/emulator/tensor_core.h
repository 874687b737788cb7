// SPDX-License-Identifier: Apache-2.0
//
// The tensor-core half of kernels/cuda/device/mma.h for fibers: the layouts are those that the PTX
// manual gives for ldmatrix and mma.m16n8k16.
#pragma once

#include "words.h"

namespace orr_cuda {

// The word that lane l gets: columns 2*(l%4) and the next of row l/4.
inline void load_matrices(uint32_t* x, const void* row) {
  const int lane = ::emulator::self().lane;
  for (int i = 0; i < 4; ++i) {
    const char* from = static_cast<const char*>(
        __shfl_sync(0xffffffffu, row, i * 8 + lane / 4));
    std::memcpy(&x[i], from + lane % 4 * 4, 4);
  }
}

inline void load_transposed(uint32_t* x, const void* row) {
  const int lane = ::emulator::self().lane;
  for (int i = 0; i < 4; ++i) {
    uint16_t both[2];
    for (int j = 0; j < 2; ++j) {
      const char* from = static_cast<const char*>(
          __shfl_sync(0xffffffffu, row, i * 8 + lane % 4 * 2 + j));
      std::memcpy(&both[j], from + lane / 4 * 2, 2);
    }
    std::memcpy(&x[i], both, 4);
  }
}

template <class T>
float element_of(uint32_t word, int i) {
  T both[2];
  std::memcpy(static_cast<void*>(both), &word, 4);
  return get(both[i]);
}

template <class T>
void multiply(Result& c, const OperandA& a, const OperandB& b) {
  struct Words {
    uint32_t a[4], b[2];
  };
  Words mine = {{a.x[0], a.x[1], a.x[2], a.x[3]}, {b.x[0], b.x[1]}};
  const int lane = ::emulator::self().lane;
  const auto* all =
      static_cast<const char*>(::emulator::exchange(0xffffffffu, &mine, sizeof mine, 0));
  const auto word_of = [&](int of) {
    Words w;
    std::memcpy(&w, all + of * 32, sizeof w);
    return w;
  };
  for (int i = 0; i < 4; ++i) {
    const int row_lane = lane / 4 * 4, column = lane % 4 * 2 + i % 2;
    for (int k = 0; k < 16; ++k) {
      const Words left = word_of(row_lane + k % 8 / 2), right = word_of(column * 4 + k % 8 / 2);
      c.x[i] += element_of<T>(left.a[i / 2 + k / 8 * 2], k % 2) *
                element_of<T>(right.b[k / 8], k % 2);
    }
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

}  // namespace orr_cuda
