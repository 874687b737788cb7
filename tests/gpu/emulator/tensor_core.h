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

// TF32: 10 bits of fraction, to nearest, ties away from 0. Column k of the left operand is with
// lane k % 4 of a row's, row k of the right one with lane k % 4 of a column's.
inline float as_tf32(uint32_t bits) { return __uint_as_float((bits + 0x1000) & ~0x1fffu); }
template <>
inline void multiply<float>(Result& c, const OperandA& a, const OperandB& b) {
  struct Shown {
    float left[4], right[2];
  };
  Shown mine;
  for (int i = 0; i < 4; ++i) mine.left[i] = as_tf32(a.x[i]);
  for (int i = 0; i < 2; ++i) mine.right[i] = as_tf32(b.x[i]);
  const int lane = ::emulator::self().lane;
  const auto* all =
      static_cast<const char*>(::emulator::exchange(0xffffffffu, &mine, sizeof mine, 0));
  const auto shown_by = [&](int of) {
    return reinterpret_cast<const Shown*>(all + of * ::emulator::kShown);
  };
  for (int i = 0; i < 4; ++i)
    for (int k = 0; k < 8; ++k)
      c.x[i] += shown_by(lane / 4 * 4 + k % 4)->left[i / 2 + k / 4 * 2] *
                shown_by((lane % 4 * 2 + i % 2) * 4 + k % 4)->right[k / 4];
}

// Warpgroups (kernels/cuda/device/warpgroup.h).
inline const bool& kWarpgroups = ::emulator::has_warpgroups;

inline char* tile_memory() { return ::emulator::dynamic_shared; }

// As PTX has it: address, leading and stride offset, each a sixteenth, and the kind of permutation.
// Bits of an address are those behind the beginning of shared memory.
inline uint64_t describe_matrix(const void* at, int offset, int blocks) {
  const auto address = uint64_t(static_cast<const char*>(at) + offset - ::emulator::dynamic_shared);
  return address >> 4 | uint64_t(blocks >> 4) << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}
struct Described {
  explicit Described(uint64_t m)
      : start((m & 0x3fff) << 4),
        leading((m >> 16 & 0x3fff) << 4),
        stride((m >> 32 & 0x3fff) << 4) {}
  // What lies at the address, whose bits 4 to 6 are permuted by bits 7 to 9.
  template <class T>
  static float at(uint64_t address) {
    T x;
    std::memcpy(static_cast<void*>(&x),
                ::emulator::dynamic_shared + (address ^ (address >> 7 & 7) << 4), 2);
    return get(x);
  }
  // Element k of a row whose elements are summed.
  template <class T>
  float in_row(int row, int k) const {
    return at<T>(start + uint64_t(row / 8) * stride + uint64_t(row % 8) * 128 + uint64_t(k) * 2);
  }
  // Element k of a column whose elements are summed.
  template <class T>
  float in_column(int k, int column) const {
    return at<T>(start + uint64_t(k / 8) * stride + uint64_t(k % 8) * 128 +
                 uint64_t(column / 64) * leading + uint64_t(column % 64) * 2);
  }
  uint64_t start, leading, stride;
};

inline void publish_to_products() {}
inline void begin_products() {}
inline void end_batch() { ::emulator::self().batches.emplace_back(); }
// Computes the batches that are awaited now, as late as they may be on a device.
template <int others, class... Results>
void await_products(Results&...) {
  auto& batches = ::emulator::self().batches;
  for (; batches.size() > others + 1; batches.pop_front())
    for (const auto& product : batches.front()) product();
}
template <class... Results>
void end_products(Results&... d) {
  end_batch();
  await_products<0>(d...);
}

template <class T>
struct Warpgroup {
  template <int columns>
  static void rows(Result (&d)[columns], uint64_t a, uint64_t b, bool adds) {
    later([=, &d] { rows_now(d, a, b, adds); });
  }
  template <int columns>
  static void add(Result (&d)[columns], const OperandA& a, uint64_t b) {
    later([=, &d] { add_now(d, a, b); });
  }

 private:
  static void later(std::function<void()> product) {
    ::emulator::self().batches.back().push_back(std::move(product));
  }
  // Calls f(element, row of the warpgroup, column) for what this lane has of n * 8 columns.
  template <int columns, class F>
  static void each(Result (&d)[columns], F f) {
    const int lane = ::emulator::self().lane, first = ::emulator::self().warp % 4 * 16 + lane / 4;
    for (int n = 0; n < columns; ++n)
      for (int i = 0; i < 4; ++i) f(d[n].x[i], first + i / 2 * 8, n * 8 + lane % 4 * 2 + i % 2);
  }
  template <int columns>
  static void rows_now(Result (&d)[columns], uint64_t a, uint64_t b, bool adds) {
    const Described left(a), right(b);
    each(d, [&](float& x, int row, int column) {
      if (!adds) x = 0;
      for (int k = 0; k < 16; ++k) x += left.in_row<T>(row, k) * right.in_row<T>(column, k);
    });
  }
  template <int columns>
  static void add_now(Result (&d)[columns], const OperandA& a, uint64_t b) {
    float mine[4][2];
    for (int i = 0; i < 4; ++i) widen<T>(a.x[i], mine[i]);
    const auto* all =
        static_cast<const char*>(::emulator::exchange(0xffffffffu, mine, sizeof mine, 0));
    const Described right(b);
    each(d, [&](float& x, int row, int column) {
      for (int k = 0; k < 16; ++k) {
        float shown[4][2];  // by the lane that has this element of the left operand
        std::memcpy(shown, all + (row % 8 * 4 + k % 8 / 2) * ::emulator::kShown, sizeof shown);
        x += shown[row % 16 / 8 + k / 8 * 2][k % 2] * right.in_column<T>(k, column);
      }
    });
  }
};

inline void copy_async(void* to, const void* from, bool present) {
  ::emulator::copy_async(to, from, present ? 16 : 0);
}
inline void end_copies() { ::emulator::end_copies(); }
template <int others>
void wait_copies_but() {
  ::emulator::wait_copies(others);
}
inline void wait_copies() { ::emulator::wait_copies(); }

inline float exp2_fast(float x) { return std::exp2(x); }

}  // namespace orr_cuda
