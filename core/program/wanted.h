// SPDX-License-Identifier: Apache-2.0
//
// Texts that errors of several ops share.
#pragma once

#include <string>

#include "program/eight_bits.h"

namespace orrery {

// For an op that needs real numbers: how the user can make them of this dtype; "" if it is real.
inline std::string how_to_make_real(int32_t dtype) {
  if (is_real(dtype)) return "";
  if (is_eight_bits(dtype)) return "; cast it first: x:cast(\"bf16\") changes no value";
  return "; whole numbers in Lua make i64: write 1.0 for 1, orrery.tensor(values, \"f32\") or "
         "x:cast(\"f32\")";
}

}  // namespace orrery
