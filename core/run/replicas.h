// SPDX-License-Identifier: Apache-2.0
//
// Whether ranks that hold the same part of a state hold the same value of it. [main thread]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/state.h"

namespace orrery {

// Throws Error, on all ranks, that names the first state that differs, and the script's line that
// has written to it if there is one. The states are the same on all ranks, in one order.
// Collective.
void compare_replicas(const std::vector<std::shared_ptr<State>>& states, const std::string& line);

// write_state for the script, which may do so on one rank alone; `line` is its own.
void give_state(const std::shared_ptr<State>& state, const HostTensor& value,
                const std::string& line);
// The script has changed a state outside of the programs that all ranks run.
void note_written(const std::shared_ptr<State>& state, const std::string& line);
// Whether any of these was, since they were compared.
bool any_written(const std::vector<std::shared_ptr<State>>& states);

// "the value nan at [3,2]" (positions from 1) of the first element of what this rank holds that is
// not finite, or, with `nan_only`, no number; "" if there is none. Any dtype.
std::string not_finite(const HostTensor& value, bool nan_only);

}  // namespace orrery
