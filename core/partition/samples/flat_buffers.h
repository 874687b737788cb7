// SPDX-License-Identifier: Apache-2.0
//
// Which states share a block of memory, because one exchange moves them all.
#pragma once

#include <vector>

#include "partition/localize.h"

namespace orrery {

// One for each list of states that the program keeps together. None for states that have memory of
// their own already, as those of a compiled program, and for those of another tier, which are
// copied through buffers.
std::vector<FlatBuffer> flat_buffers_of(const Program& p);

}  // namespace orrery
