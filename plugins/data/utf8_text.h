// SPDX-License-Identifier: Apache-2.0
//
// Texts that tokenizers take.
#pragma once

#include <orrery/sdk/utf8.hpp>
#include <string>

#include "refuse.h"

namespace data {

// Throws an Error, which begins with `name`, for a text that is not UTF-8. [any thread]
inline void check_utf8(const std::string& text, const std::string& name) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = orr::code_point(text, at).bytes;
    if (!size) refuse(name, ": byte ", at, " is not UTF-8");
    at += size;
  }
}

}  // namespace data
