// SPDX-License-Identifier: Apache-2.0
//
// Converts the arguments of orrery.compile to the run's specification in C++ (RunSpec). The loss
// and the update are traced by calling Lua. [main thread]
#pragma once

#include <memory>

#include "lua/layer.h"
#include "lua/trace_record.h"
#include "run/run.h"

namespace orrery::lua {

// Makes a record that watches the values which the specification's functions close over.
std::shared_ptr<TraceRecord> watch_functions(const Table& given);

// Throws Error for fields of a wrong type.
RunSpec spec_of(const Table& given, const std::shared_ptr<TraceRecord>& record);

}  // namespace orrery::lua
