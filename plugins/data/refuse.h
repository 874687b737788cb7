// SPDX-License-Identifier: Apache-2.0
//
// Errors of readers.
#pragma once

#include <orrery/sdk/plugin.hpp>
#include <sstream>

namespace data {

// Throws an error of this code, with the parts as one text.
template <class... Parts>
[[noreturn]] void fail(int32_t code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw orr::Error(code, text.str());
}

// The caller's file or option is wrong.
template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  fail(ORR_INVALID, parts...);
}

}  // namespace data
