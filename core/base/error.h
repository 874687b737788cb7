// SPDX-License-Identifier: Apache-2.0
//
// The core's one exception: a code of types.h (also the exit code) and a sentence for the user.
#pragma once

#include <fmt/format.h>
#include <orrery/types.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace orrery {

class Error : public std::runtime_error {
 public:
  Error(int code, const std::string& message) : std::runtime_error(message), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// Throws Error(code, formatted message).
template <class... Args>
[[noreturn]] void fail(int code, fmt::format_string<Args...> text, Args&&... args) {
  throw Error(code, fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace orrery
