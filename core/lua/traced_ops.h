// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lua/call.h"

namespace orrery::lua {

// engine.traced: pushes {inputs =, results =, values =, ops =, updates =} of the function at stack
// index `body`, traced for HostTensors of these types. Numbers of values, registers and inputs of
// instructions count from 1.
Pushed traced(lua_State* L, Index body, Index inputs);

}  // namespace orrery::lua
