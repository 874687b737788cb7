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

namespace local {

// Copies into shared memory; a release store that follows publishes it.
void put(void* slot, const void* from, uint64_t bytes);

// Copies out of shared memory bytes of a message or of a rank's piece of `all` bytes.
void take(void* to, const void* from, uint64_t bytes, uint64_t all);

// Brings a line that peers have read back to this CPU, ahead of the store that would wait for it.
inline void claim(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace local
