// SPDX-License-Identifier: Apache-2.0
//
// The argument types that rows of the API table may name.
#pragma once

#include <string>

#include "lua/layer.h"

namespace orrery::lua {

struct ApiType {
  const char* name;
  const char* luals;  // in stubs
  const char* words;  // in messages
  bool (*is)(lua_State*, int index);
};

// The row of a name; throws for an unknown one (a defect of the table).
const ApiType& api_type(const std::string& name);

}  // namespace orrery::lua
