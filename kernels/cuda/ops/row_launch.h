// SPDX-License-Identifier: Apache-2.0
//
// The host's side of device/row_team.h: how many threads work on a row, and how much shared memory
// they use.
#pragma once

#include <string>

#include "../device/rows.h"
#include "../function.h"
#include "../op.h"

namespace orr_cuda {

// Throws Unsupported for rows that a team cannot index.
void require_rows(const orr_tensor& x);

// "softmax_f32"
inline std::string function_name(const std::string& kind, int32_t dtype) {
  return kind + "_" + dtype_name(dtype);
}

// The shared memory of a block. Two blocks of 512 threads fit on one multiprocessor of sm_90 with
// this much each, one on sm_80.
constexpr int64_t kSharedLimit = 112 << 10;

struct RowLaunch {
  // For x[R,C], with shared memory for `staged` rows per team, or with `in_parts` for one part of a
  // row that does not fit (device/row_parts.h). REQUIRES: the device is open.
  RowLaunch(const std::string& function, const orr_tensor& x, int staged, bool in_parts = false);

  template <class Args>
  void operator()(CUstream stream, Args& args) const {
    args.rows = rows;
    if (rows.columns > 0) enqueue(stream, function, grid, block, shared, args);
  }

  Function function;
  Rows rows;
  Extent grid, block;
  unsigned shared;
};

}  // namespace orr_cuda
