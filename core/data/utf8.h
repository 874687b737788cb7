// SPDX-License-Identifier: Apache-2.0
//
// Text as code points.
#pragma once

#include <cstddef>
#include <string_view>

namespace orrery {

struct CodePoint {
  char32_t code;
  size_t bytes;  // 0: what stands there is not UTF-8
};
// REQUIRES: at < text.size(). [any thread]
CodePoint code_point(std::string_view text, size_t at);

}  // namespace orrery
