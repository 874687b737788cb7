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

// The functions of a specification whose captured values are watched for changes.
std::shared_ptr<TraceRecord> watch_functions(const Table& given);

// Throws Error for what is of another type.
RunSpec spec_of(const Table& given, const std::shared_ptr<TraceRecord>& record);

}  // namespace orrery::lua
