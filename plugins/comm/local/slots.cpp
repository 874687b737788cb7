// SPDX-License-Identifier: Apache-2.0
#include "slots.h"

#include <algorithm>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace local {

#if defined(__x86_64__)
// Lines as a whole; what is left of the first and the last is copied.
void stream(void* to, const void* from, uint64_t bytes) {
  constexpr uint64_t line_bytes = 64;
  char* const out = static_cast<char*>(to);
  const char* const in = static_cast<const char*>(from);
  const uint64_t head = std::min(bytes, -reinterpret_cast<uint64_t>(to) % line_bytes);
  std::memcpy(out, in, head);
  uint64_t at = head;
  for (; at + line_bytes <= bytes; at += line_bytes)
    for (uint64_t i = at; i < at + line_bytes; i += sizeof(__m128i))
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i)));
  std::memcpy(out + at, in + at, bytes - at);
  _mm_sfence();  // a release store does not wait for these
}
#else
void stream(void* to, const void* from, uint64_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace local
