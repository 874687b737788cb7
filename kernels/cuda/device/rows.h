// SPDX-License-Identifier: Apache-2.0
//
// How rows are divided among threads; set by the host (ops/row_launch.h), read by row_team.h. A
// team of 16, 32 or all threads of a block works on one row. Its shared memory has the partial sums
// of blocks, and then a slot for each staged row. Rows that are too long for shared memory are read
// in parts if the kernel can do that (row_parts.h), else not staged: slot_bytes is 0.
#pragma once

#include <stdint.h>

namespace orr_cuda {

enum { kRowThreads = 512 };  // the largest block

struct Rows {
  int64_t rows;
  int32_t columns;
  int32_t team;           // threads
  int32_t partial_bytes;  // a multiple of 16
  int32_t part;           // columns that are staged at once
  int32_t slot_bytes;     // of one staged row, or part of one; a multiple of 16
  int32_t team_bytes;
};

}  // namespace orr_cuda
