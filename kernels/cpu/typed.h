// SPDX-License-Identifier: Apache-2.0
//
// Making the kernel class of an element type: Make<K>::of(dtype, op) is new K<float>(op), ...
#pragma once

#include "vec.h"

namespace orr_cpu::ORR_ISA {

// REQUIRES: dtype is f32, bf16, f16 or f64 (the table's `supports` saw to it).
template <template <class> class K>
inline Kernel* make_real(int32_t dtype, const orr_op& op) {
  switch (dtype) {
    case ORR_F32: return new K<float>(op);
    case ORR_BF16: return new K<bf16>(op);
    case ORR_F16: return new K<f16>(op);
    default: return new K<double>(op);
  }
}

}  // namespace orr_cpu::ORR_ISA
