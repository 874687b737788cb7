// SPDX-License-Identifier: Apache-2.0
//
// Numbers and texts as JSON has them.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

namespace observer {

// The shortest decimal that reads back as the value; null if it is not finite.
inline std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
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
