// SPDX-License-Identifier: Apache-2.0
//
// States that count how often another state was updated, as optimizers need it. A checkpoint with
// the other state and without the count is of a program that did not count: every update was a
// step of the run then (run/run_states.h). [main thread]
#pragma once

#include <memory>

#include "program/state.h"

namespace orrery {

// REQUIRES: `count` is one number of f32.
void note_count(const std::shared_ptr<State>& count, const std::shared_ptr<State>& of);

// The state whose updates it counts; null if it is no count, or that state is gone.
std::shared_ptr<const State> counted_by(const std::shared_ptr<State>& count);

}  // namespace orrery
