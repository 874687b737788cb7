// SPDX-License-Identifier: Apache-2.0
//
// Makes the texts of errors.
#pragma once

#include <sstream>
#include <string>

#include <orrery/sdk/plugin.hpp>

namespace server {

// Returns its arguments as text, one after another.
template <class... Args>
std::string text(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <class... Args>
[[noreturn]] void fail(int32_t code, const Args&... args) {
  throw orr::Error(code, text(args...));
}

}  // namespace server
