// SPDX-License-Identifier: Apache-2.0
//
// What orrery.compile was told, as the run's C++ specification: the loss and the update are traced
// by calling Lua. [main thread]
#pragma once

#include <memory>

#include "lua/layer.h"
#include "lua/trace_record.h"
#include "run/run.h"

namespace orrery::lua {

// A field of the table at `index` as a C++ function; the field must be a function.
Function function_field(lua_State* L, int index, const char* name);

// The functions of the table at `index` whose captured values are watched for changes.
std::shared_ptr<TraceRecord> watch_functions(lua_State* L, int index);

// The specification in the table at `index`. Throws Error for what is of another type.
RunSpec spec_at(lua_State* L, int index, const std::shared_ptr<TraceRecord>& record);

}  // namespace orrery::lua
