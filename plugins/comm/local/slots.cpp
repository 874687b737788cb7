// SPDX-License-Identifier: Apache-2.0
#include "slots.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace local {
namespace {

#if defined(__x86_64__)
constexpr uint64_t line_bytes = 64;
constexpr uint64_t worth_streaming =
    8 << 10;  // below, to wait for memory takes longer than the lines
constexpr uint64_t worth_bypassing = 4 << 20;  // what is received is used soon, if it fits a cache

// Lines as a whole; what is left of the first and the last is copied.
void stream(char* to, const char* from, uint64_t bytes) {
  const uint64_t head = std::min(bytes, -reinterpret_cast<uint64_t>(to) % line_bytes);
  std::memcpy(to, from, head);
  uint64_t at = head;
  for (; at + line_bytes <= bytes; at += line_bytes)
    for (uint64_t i = at; i < at + line_bytes; i += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
  std::memcpy(to + at, from + at, bytes - at);
  _mm_sfence();  // a release store does not wait for these
}
#endif

}  // namespace

void put(void* slot, const void* from, uint64_t bytes) {
#if defined(__x86_64__)
  if (bytes >= worth_streaming)
    return stream(static_cast<char*>(slot), static_cast<const char*>(from), bytes);
#endif
  std::memcpy(slot, from, bytes);
}

void take(void* to, const void* from, uint64_t bytes, [[maybe_unused]] uint64_t all) {
#if defined(__x86_64__)
  if (all >= worth_bypassing && bytes >= worth_streaming)
    return stream(static_cast<char*>(to), static_cast<const char*>(from), bytes);
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace local
