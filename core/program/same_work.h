// SPDX-License-Identifier: Apache-2.0
//
// Ops that do the same, such as an op that a script adds twice.
#pragma once

#include "program/program.h"

namespace orrery {

// Whether the ops are equal but for what they read and write and where they stand: in their kind,
// attributes and expression.
bool is_same_work(const Op& a, const Op& b);

}  // namespace orrery
