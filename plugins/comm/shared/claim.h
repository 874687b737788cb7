// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace shared {

// Brings a line that peers have read back to this CPU, ahead of the store that would wait for it.
inline void claim(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace shared
