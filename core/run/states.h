// SPDX-License-Identifier: Apache-2.0
//
// Where states live on this rank, and which part of each. [main thread]
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "program/state.h"

namespace orrery {

struct Neighbours;
struct Neighbours;
using HeldParts = std::vector<std::pair<std::shared_ptr<State>, Part>>;

// Gives every state the part that a program over `world` ranks wants of it and binds it there: memory,
// and its initial value if it has none. Throws Error if another program holds another part. A state
// that is only read and written so far moves, also into a row of `neighbours`. Collective if world > 1: the ranks tell one another
// their parts, so that the whole can be read.
// A new row lies in what `allocate` gives it, zeroed.
using RowMemory = std::function<std::shared_ptr<const orr_memory>(const Neighbours&)>;
void hold(const HeldParts& parts, const std::vector<Neighbours>& neighbours, int world, const RowMemory& allocate = {});

std::byte* state_address(const State& state);
// REQUIRES: the state has memory, zeroed.
void set_initial(const std::shared_ptr<State>& state);

}  // namespace orrery
