// SPDX-License-Identifier: Apache-2.0
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

}  // namespace data
