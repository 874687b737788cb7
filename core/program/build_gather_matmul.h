// SPDX-License-Identifier: Apache-2.0
//
// Products of rows with matrices that an index chooses (ops/gather_matmul.cpp).
#pragma once

#include "program/program.h"

namespace orrery::build {

// Row by row x[..., d] times the matrix of w[E, d, f] that index[...] names: [..., f]; 0 where the
// index is -1. `transpose_b`: w is [E, f, d].
ValueId gather_matmul(Program& p, ValueId x, ValueId w, ValueId index, bool transpose_b = false);

}  // namespace orrery::build
