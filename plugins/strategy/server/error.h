// SPDX-License-Identifier: Apache-2.0
//
// Errors in sentences.
#pragma once

#include <sstream>
#include <string>

#include <orrery/sdk/plugin.hpp>

namespace server {

// Its arguments, one after another.
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
