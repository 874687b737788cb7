// SPDX-License-Identifier: Apache-2.0
//
// Base64 with padding (RFC 4648, section 4).
#pragma once

#include <string>
#include <string_view>

namespace data {

// "" for what is no base64. [any thread] both.
std::string from_base64(std::string_view text);
std::string to_base64(const std::string& bytes);

}  // namespace data
