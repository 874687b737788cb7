// SPDX-License-Identifier: Apache-2.0
//
// Small collectives of an update travel as one: to start an exchange takes longer than to move so
// little.
#pragma once

#include "program/program.h"

namespace orrery {

// Finds collectives of equal kind that need nothing of each other, and puts them side by side (int
// "group"). For the logical program: the order of exchanges has to be the same on all ranks.
void group_collectives(Program& p);

// Makes one collective of each group. For a rank's program.
void merge_groups(Program& p);

}  // namespace orrery
