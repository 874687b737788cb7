// SPDX-License-Identifier: Apache-2.0
//
// The draft that a strategy written in Lua gets. Values are tables as its `values` makes them, or
// their numbers; dims count from 1.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "lua/objects.h"

namespace orrery::lua {

// The draft at index 1. Throws unless its strategy is at work on it.
const Draft& open_draft(lua_State* L);
// The number of the value at the index.
int32_t id_at(lua_State* L, int index);

// The number behind a name. Throws an Error that names all that are `known`.
template <class Named>
int32_t find(const char* what, const std::string& name, const Named& known) {
  std::vector<std::string> names;
  for (const auto& [text, number] : known) {
    if (text == name) return number;
    names.push_back(text);
  }
  fail(ORR_INVALID, "there is no {} '{}'; there are: {}", what, name, join(names, ", "));
}

}  // namespace orrery::lua
