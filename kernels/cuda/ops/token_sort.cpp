// SPDX-License-Identifier: Apache-2.0
#include "token_sort.h"

namespace orr_cuda {
namespace {

Extent threads(int64_t n) { return {unsigned((n + kIndexThreads - 1) / kIndexThreads)}; }

}  // namespace

TokenSort::TokenSort(const orr_op& op, const std::string& late, const orr_tensor& index,
                     int64_t rows, bool skips)
    : late_(op, late),
      tokens_(index.dims[0]),
      rows_(rows),
      wide_(index.dtype == ORR_I64),
      skips_(skips) {
  const char* const steps[] = {"clear", "count", "scan", "place", "rank"};
  for (int i = 0; i < 5; ++i) steps_[i] = find_function(std::string("scatter_sort_") + steps[i]);
}

TokenSort::Sorted TokenSort::enqueue(CUstream stream, CUdeviceptr index,
                                     CUdeviceptr workspace) const {
  auto* start = pointer<int32_t>(workspace);
  int32_t *cursor = start + rows_ + 1, *loose = cursor + rows_, *order = loose + tokens_;
  const ScatterSortArgs args{pointer(index), wide_, tokens_, rows_,        start,
                             cursor,         loose, order,   late_.args(), skips_};
  const Extent grids[] = {
      threads(rows_ + 1), threads(tokens_), {1}, threads(tokens_), threads(tokens_)};
  for (int i = 0; i < 5; ++i)
    orr_cuda::enqueue(stream, steps_[i], grids[i],
                      {i == 2 ? unsigned(kScanThreads) : unsigned(kIndexThreads)}, 0, args);
  return {start, order};
}

// start, cursor, loose and order of ScatterSortArgs.
uint64_t TokenSort::workspace(int64_t tokens, int64_t rows) {
  return 4 * uint64_t(2 * rows + 1 + 2 * tokens);
}

}  // namespace orr_cuda
