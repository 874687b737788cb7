// SPDX-License-Identifier: Apache-2.0
//
// Bytes that a peer reads next are written past the caches. Where two CPUs share none, a line that
// one has written reaches the other from its cache, one by one and 45 ns each, while what lies in
// memory streams: 1.4 GB/s beside 10 and more. Where they share one, the two ways are equally fast;
// and a virtual machine's CPUs may move from the one case to the other within a second. What is
// read goes past them, too, where it would drive out more than it is worth: a line that is stored
// as a whole is not fetched from memory first.
#pragma once

#include <cstdint>
#include <cstring>

namespace local {

// Below, to wait for memory takes longer than for the lines.
constexpr uint64_t worth_streaming = 8 << 10;
// What is received is used soon, if it fits a cache.
constexpr uint64_t worth_bypassing = 4 << 20;

// Copies past the caches.
void stream(void* to, const void* from, uint64_t bytes);

// Copies into shared memory; a release store that follows publishes it.
inline void put(void* slot, const void* from, uint64_t bytes) {
  bytes < worth_streaming ? void(std::memcpy(slot, from, bytes)) : stream(slot, from, bytes);
}

// Copies out of shared memory bytes of a message or of a rank's piece of `all` bytes.
inline void take(void* to, const void* from, uint64_t bytes, uint64_t all) {
  all < worth_bypassing ? void(std::memcpy(to, from, bytes)) : put(to, from, bytes);
}

// Brings a line that peers have read back to this CPU, ahead of the store that would wait for it.
inline void claim(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace local
