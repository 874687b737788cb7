// SPDX-License-Identifier: Apache-2.0
//
// Pixels of eight bits as numbers.
#pragma once

#include "program/types.h"
#include "store/stored.h"

namespace orrery {

// Bytes become real numbers in [0,1], by a division by 255; integers stay what they are.
inline Elements pixels(Elements stored, int32_t dtype) {
  if (stored.kind == Stored::u8 && is_real(dtype)) stored.divisor = 255;
  return stored;
}

}  // namespace orrery
