// SPDX-License-Identifier: Apache-2.0
//
// Makes the kernel class for an element type: Make<K>::of(dtype, op) is new K<float>(op), ...
#pragma once

#include "vec.h"

namespace orr_cpu::ORR_ISA {

// REQUIRES: dtype is f32, bf16, f16 or f64 (`supports` has checked it).
template <template <class> class K>
inline Kernel* make_real(int32_t dtype, const orr_op& op) {
  switch (dtype) {
    case ORR_F32: return new K<float>(op);
    case ORR_BF16: return new K<bf16>(op);
    case ORR_F16: return new K<f16>(op);
    default: return new K<double>(op);
  }
}

// The same for sums of one element type that are stored as another: K<summed, stored>.
// REQUIRES: sums_into(from, to).
template <template <class, class> class K>
inline Kernel* make_sum(int32_t from, int32_t to, const orr_op& op) {
  switch (from) {
    case ORR_F64: return new K<double, double>(op);
    case ORR_BF16: return to == ORR_F32 ? (Kernel*)new K<bf16, float>(op) : new K<bf16, bf16>(op);
    case ORR_F16: return to == ORR_F32 ? (Kernel*)new K<f16, float>(op) : new K<f16, f16>(op);
    default: break;
  }
  if (to == ORR_BF16) return new K<float, bf16>(op);
  if (to == ORR_F16) return new K<float, f16>(op);
  return new K<float, float>(op);
}

}  // namespace orr_cpu::ORR_ISA
