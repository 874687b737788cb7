// SPDX-License-Identifier: Apache-2.0
//
// PyTorch's elements as those of Orrery.
#pragma once

#include <orrery/types.h>

#include <string>

#include "elements.h"

namespace data {

constexpr struct {
  const char* name;  // as NumPy has it
  int32_t dtype;
} kDtypes[] = {{"<f4", ORR_F32}, {"<f8", ORR_F64}, {"<f2", ORR_F16}, {"bfloat16", ORR_BF16},
               {"<i8", ORR_I64}, {"<i4", ORR_I32}, {"|u1", ORR_U8},  {"|b1", ORR_BOOL}};

// 0 if there is none.
inline int32_t dtype_of(const std::string& elements) {
  for (const auto& each : kDtypes)
    if (elements == each.name) return each.dtype;
  return 0;
}

// Null if there is none.
inline const TorchElements* torch_elements(int32_t dtype) {
  for (const TorchElements& each : kTorchElements)
    if (dtype_of(each.name) == dtype) return &each;
  return nullptr;
}

}  // namespace data
