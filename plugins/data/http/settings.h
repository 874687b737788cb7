// SPDX-License-Identifier: Apache-2.0
//
// What the environment says, and texts of settings and headers.
#pragma once

#include <cstdlib>
#include <string>

namespace data {

// The first of these variables of the environment that is set and not empty; "" if none is.
inline std::string variable(const char* name, const char* other = nullptr) {
  for (const char* each : {name, other})
    if (const char* value = each ? std::getenv(each) : nullptr; value && *value) return value;
  return "";
}

// XDG_CACHE_HOME, or else ~/.cache; "" if neither is known.
inline std::string cache_folder() {
  const std::string given = variable("XDG_CACHE_HOME"), home = variable("HOME");
  return !given.empty() || home.empty() ? given : home + "/.cache";
}

// Without blanks and ends of lines around it.
inline std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == text.npos ? "" : text.substr(first, last - first + 1);
}

}  // namespace data
