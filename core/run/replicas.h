// SPDX-License-Identifier: Apache-2.0
//
// Checks that ranks which hold the same part of a state hold the same value. [main thread]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "program/state.h"

namespace orrery {

// Throws Error, on all ranks, that names the first state that differs, and the script's line that
// has written it, if one has, or else `remedy`. The states must be the same on all ranks, in the
// same order. Collective.
void compare_replicas(
    const std::vector<std::shared_ptr<State>>& states, const std::string& line,
    const std::string& remedy = "all must begin with the same checkpoint, seed and values");

// Calls write_state for the script's line `line`, which may run on one rank only.
void give_state(const std::shared_ptr<State>& state, const HostTensor& value,
                const std::string& line);
// Notes that the script has changed a state outside the programs that all ranks run.
void note_written(const std::shared_ptr<State>& state, const std::string& line);
// Whether any of these states was so changed since the last comparison.
bool any_written(const std::vector<std::shared_ptr<State>>& states);

// Describes the first element that is not finite, or with `nan_only` is NaN, as "nan at [3,2]"
// (positions from 1); "" if there is none. Any dtype. `offset`: of the value in a larger tensor.
std::string not_finite(const HostTensor& value, bool nan_only, const Dims& offset = {});

}  // namespace orrery
