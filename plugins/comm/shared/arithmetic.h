// SPDX-License-Identifier: Apache-2.0
//
// The adds of the host backends. One kernel form: fold K equal vectors in order into one. 16-bit
// floats are folded in f32 and rounded once, to nearest even; integers wrap; NaN wins in min and max.
#pragma once

#include <cstdint>

namespace shared {

// out[i] = in[0][i] (op) in[1][i] (op) ... (op) in[k-1][i], left to right. `out` may be any of the
// inputs. REQUIRES: k >= 1.
using Fold = void (*)(void* out, const void* const* in, int k, int64_t n);

// The kernel for a dtype and ORR_RED_, or null when there is none.
Fold fold_for(int32_t dtype, int32_t redop);

}  // namespace shared
