// SPDX-License-Identifier: Apache-2.0
//
// Samples as functions of the script see and make them: tables of HostTensors by names of fields.
#pragma once

#include "data/order.h"
#include "lua/layer.h"

namespace orrery::lua {

// Pushes a sample. Reads it.
void push_sample(lua_State* L, const Dataset& data, const Pick& pick);

// What change(sample, random) of the script makes of each sample when that is read; its fields are
// those of the first, which is made here. The random numbers are a function of Pick::draw. Throws
// Error, as `read` does, that names `line` and the sample. [main thread]
DatasetPtr mapped(DatasetPtr data, Function change, const std::string& line);

}  // namespace orrery::lua
