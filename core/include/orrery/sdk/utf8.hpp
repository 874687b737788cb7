// SPDX-License-Identifier: Apache-2.0
//
// Text as code points.
#pragma once

#include <cstddef>
#include <string_view>

namespace orr {

struct CodePoint {
  char32_t code;
  size_t bytes;  // 0: what stands there is not UTF-8
};

// REQUIRES: at < text.size(). [any thread]
inline CodePoint code_point(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0x80   ? 1
                      : lead < 0xc2 ? 0
                      : lead < 0xe0 ? 2
                      : lead < 0xf0 ? 3
                      : lead < 0xf5 ? 4
                                    : 0;
  if (size == 0 || size > text.size() - at) return {0, 0};
  char32_t code = size == 1 ? lead : lead & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool is_longer = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (is_longer || (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) return {0, 0};
  return {code, size};
}

}  // namespace orr
