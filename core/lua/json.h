// SPDX-License-Identifier: Apache-2.0
//
// JSON values as Lua values.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "lua/layer.h"

namespace orrery::lua {

// Pushes it: objects and arrays become tables, null becomes nil (it is left out of objects).
void push_json(lua_State* L, const nlohmann::json& json);

// The fields of a table that are numbers or texts, as an object.
nlohmann::json plain_fields(const Table& given);

}  // namespace orrery::lua
