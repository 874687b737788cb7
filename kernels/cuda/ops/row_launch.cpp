// SPDX-License-Identifier: Apache-2.0
#include "row_launch.h"

#include <algorithm>

namespace orr_cuda {
namespace {

constexpr int kSmallBlock = 128;

// Half a warp for each block of sums, while a block of threads has as many.
int team_size(int64_t blocks) {
  int team = 16;
  while (team < kRowThreads && team / 16 < blocks) team *= 2;
  return team;
}

// The columns of a part if there are as few parts as possible, each a whole number of blocks of
// sums and at most `most` columns.
int64_t even_part(int64_t columns, int64_t most) {
  const int64_t largest = most / ORR_SUM_BLOCK * ORR_SUM_BLOCK;
  return round_up(divide_up(columns, divide_up(columns, largest)), ORR_SUM_BLOCK);
}

}  // namespace

void require_rows(const orr_tensor& x) {
  require_rank(x, 2, "x");
  require(x.dims[1] < int64_t{1} << 23, "rows of 8 million elements or more");
}

RowLaunch::RowLaunch(const std::string& name, const orr_tensor& x, int staged, bool in_parts)
    : function(find_function(name)), rows{} {
  const int64_t bytes = orr_dtype_bytes(x.dtype), columns = x.dims[1];
  const int64_t blocks = (columns + ORR_SUM_BLOCK - 1) / ORR_SUM_BLOCK;
  rows.rows = x.dims[0];
  rows.columns = int32_t(columns);
  rows.team = team_size(blocks);
  // A partial sum of 8 bytes for each block of sums, and for each warp where a fold needs it.
  rows.partial_bytes =
      int32_t(rows.team == 16 ? 0 : round_up(8 * std::max(blocks, int64_t{16}), 16));
  const int threads = std::max(rows.team, kSmallBlock), teams = threads / rows.team;
  const auto slot_of = [&](int64_t part) { return round_up(part * bytes, 16) + 16; };
  const bool fits = teams * (rows.partial_bytes + staged * slot_of(columns)) <= kSharedLimit;
  const int64_t room = kSharedLimit / teams - rows.partial_bytes - slot_of(0);
  rows.part = int32_t(fits || !in_parts ? columns : even_part(columns, room / bytes));
  rows.slot_bytes = int32_t(fits || in_parts ? slot_of(rows.part) : 0);
  rows.team_bytes = rows.partial_bytes + staged * rows.slot_bytes;
  shared = unsigned(teams * rows.team_bytes);
  if (shared > 48 << 10) allow_shared(function, unsigned(kSharedLimit));
  grid = {unsigned((rows.rows + teams - 1) / teams)};
  block = {unsigned(threads)};
}

}  // namespace orr_cuda
