// SPDX-License-Identifier: Apache-2.0
//
// Names of what a script records as parts of paths of files.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace observer {

// As MLflow allows names: others' characters become "_", and no part leads out of the folder.
inline std::string file_name(std::string_view name) {
  std::string out, part;
  const auto end_part = [&] {
    out += part.empty() || part == "." || part == ".." ? "_" : part;
    part.clear();
  };
  for (const char c : name) {
    if (c == '/') {
      end_part(), out += c;
      continue;
    }
    const auto u = static_cast<unsigned char>(c);
    const bool plain =
        std::isalnum(u) || u >= 0x80 || std::string_view("_-. :").find(c) != std::string_view::npos;
    part += plain ? c : '_';
  }
  end_part();
  return out;
}

}  // namespace observer
