// SPDX-License-Identifier: Apache-2.0
//
// Generates the source text of a pointwise op's kernel. It has two functions with the same
// parameters: a struct Args of addresses, inputs first, and the number of elements.
// pointwise_vector handles `vector` elements per thread, and needs every address aligned to them;
// pointwise_single handles one.
#pragma once

#include <orrery/kernel.h>

#include <string>

#include "device/fold.h"
#include "pointwise_layout.h"

namespace orr_cuda {

constexpr unsigned pointwise_block = 256;  // threads

// Throws Unsupported if the op does not follow ops.h. Pure.
std::string pointwise_source(const orr_op& op, const Walk& walk);

// The source of pointwise_many, which does the work of several launches of pointwise_vector. Each
// launch is a row of 64-bit words (the addresses, the number of elements, the number of its first
// block) in a table on the device.
std::string pointwise_table_source(const orr_op& op, const Walk& walk);

// A pointwise op that reads the sums of a column, each `repeats` times (SumRows): output row k of
// a segment has these in their order. Its input `sum` is these.
struct SumsNext {
  const orr_op* op;
  const Walk* walk;
  int32_t sum;
  bool stored;  // the sum is written as well
};

// Folds over the rows of a pointwise op's first `summed` outputs, whose last dim has `columns`, by
// the function `fn` of device/fold.h. `dtype` is that of rounded results. An output is stored as
// well if `stored` has its bit.
struct ColumnSumsText {
  int64_t columns;
  int summed;
  int32_t dtype, fn;
  uint64_t stored;
  bool together;  // a block of threads folds all blocks of rows of a segment
  // What follows the sum, where there is one, nothing else is stored, and a segment is folded
  // together. Args has its tensors in the place of the first op's outputs.
  const SumsNext* next = nullptr;
  bool rounded = false;  // of what follows
};
// The source of sums_vector and sums_single, which fold each block of ORR_SUM_ROWS rows (ops.h), or
// together those of a segment, too. Their parameters are Args and SumRows.
std::string sums_source(const orr_op& op, const Walk& walk, const ColumnSumsText& sums);

// The source of sums_many, which does the work of several launches of sums_vector. A row of its
// table has Args, SumRows and the number of its first block.
std::string sums_table_source(const orr_op& op, const Walk& walk, const ColumnSumsText& sums);

// Where the sums of each block go, or together those of each segment: accumulators, or rounded. A
// segment has `length` rows in `entries` blocks. Together, `side` threads stand in each of `teams`
// rows of threads, of which each of the first ones adds a block.
struct SumRows {
  FoldArrays to;
  uint64_t segments, length, entries, rounded, side, teams, repeats;
};

}  // namespace orr_cuda
