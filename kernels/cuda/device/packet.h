// SPDX-License-Identifier: Apache-2.0
//
// Moves elements 16 bytes at a time.
#pragma once

#include "kernel.h"

namespace orr_cuda {

// Elements that are moved at once: 16 bytes of them, or fewer.
template <class T, int n = 16 / int(sizeof(T))>
struct alignas(n * sizeof(T)) Packet {
  enum { size = n };
  T v[n];
};

template <class T>
__device__ Packet<T> load_packet(const T* from) {
  if ((reinterpret_cast<uintptr_t>(from) & 15) == 0)
    return *reinterpret_cast<const Packet<T>*>(from);
  Packet<T> p;
#pragma unroll
  for (int j = 0; j < Packet<T>::size; ++j) p.v[j] = from[j];
  return p;
}

// The elements as accumulators. Two of bf16, which are upper halves of floats, lie in a word.
template <class T, int n>
__device__ Packet<Acc<T>, n> values(Packet<T, n> p) {
  Packet<Acc<T>, n> all;
  if constexpr (std::is_same_v<T, Bf16> && n % 2 == 0) {
    const auto words = reinterpret_cast<const Packet<uint32_t, n / 2>&>(p);
#pragma unroll
    for (int j = 0; j < n; ++j)
      all.v[j] = __uint_as_float(j % 2 ? words.v[j / 2] & 0xffff0000u : words.v[j / 2] << 16);
  } else {
#pragma unroll
    for (int j = 0; j < n; ++j) all.v[j] = get(p.v[j]);
  }
  return all;
}

// Accumulators rounded to elements, two of 16 bits at once.
template <class T, int n>
__device__ Packet<T, n> rounded(const Packet<Acc<T>, n>& all) {
  Packet<T, n> p;
  if constexpr (sizeof(T) == 2 && std::is_same_v<Acc<T>, float> && n % 2 == 0) {
#pragma unroll
    for (int j = 0; j < n; j += 2)
      reinterpret_cast<Packet<uint32_t, n / 2>&>(p).v[j / 2] = pack(T(), all.v[j], all.v[j + 1]);
  } else {
#pragma unroll
    for (int j = 0; j < n; ++j) p.v[j] = rounded<T>(all.v[j]);
  }
  return p;
}

// How many of n elements lie before the first multiple of 16 bytes.
template <class T>
__device__ int head_of(const T* first, int n) {
  const int head = int((16 - (reinterpret_cast<uintptr_t>(first) & 15)) & 15) / int(sizeof(T));
  return head < n ? head : n;
}

// Copies `width` elements, at once if they are 16 bytes. REQUIRES: both are then aligned to 16
// bytes.
template <int width, class T>
__device__ inline void copy_elements(T* to, const T* from) {
  if constexpr (width * sizeof(T) == 16)
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  else
    for (int j = 0; j < width; ++j) to[j] = from[j];
}

}  // namespace orr_cuda
