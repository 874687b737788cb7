// SPDX-License-Identifier: Apache-2.0
#include "op.h"

namespace orr_cuda {

const char* dtype_name(int32_t dtype) {
  static const char* const names[] = {"?", "f32", "f64", "bf16", "f16", "i32", "i64", "u8", "bool"};
  return names[orr_dtype_bytes(dtype) ? dtype : 0];
}

}  // namespace orr_cuda
