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
