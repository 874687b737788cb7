// SPDX-License-Identifier: Apache-2.0
//
// What ops on indices and scalars share: reporting a bad index, and checks.
#pragma once

#include "../device/index.h"
#include "../late.h"
#include "../op.h"

namespace orr_cuda {

inline LateArgs late_args(const LateSource& late) {
  return {reinterpret_cast<LateWord*>(late.word()), late.id()};
}

inline LateSource::Text bad_index(const std::string& kind, int64_t rows) {
  return [=](long long row, long long index) {
    return kind + ": index " + std::to_string(index) + " in row " + std::to_string(row) +
           " is outside the " + std::to_string(rows) + " rows of the table (0.." +
           std::to_string(rows - 1) + ")";
  };
}

inline void require_scalar(const orr_tensor& t, const char* name) {
  require(orr::elements(t) == 1 && t.dtype == ORR_I64,
          std::string(name) + " must be an i64 scalar");
}

}  // namespace orr_cuda
