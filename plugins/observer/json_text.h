// SPDX-License-Identifier: Apache-2.0
//
// Numbers and texts as JSON has them. Names of metrics are UTF-8; of other texts, such as the path
// of a script, U+FFFD stands for bytes that are not.
#pragma once

#include <orrery/sdk/utf8.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

namespace observer {

// The shortest decimal that reads back as the value; null if it is not finite.
inline std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == 0 && std::signbit(value)) return "-0.0";  // "-0" is the integer 0 to some readers
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

// The bytes of the code point at the beginning of `text`, in its shortest form; 0: there is none.
inline size_t valid_bytes(std::string_view text) {
  const auto [code, bytes] = orr::code_point(text, 0);
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[bytes] || code > 0x10ffff || is_surrogate ? 0 : bytes;
}

inline std::string utf8(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t bytes = valid_bytes(text);
    out += bytes ? text.substr(0, bytes) : "\xef\xbf\xbd";
    text.remove_prefix(bytes ? bytes : 1);
  }
  return out;
}

inline std::string quoted(std::string_view given) {
  std::string out = "\"";
  for (char c : utf8(given)) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace observer
