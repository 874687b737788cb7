// SPDX-License-Identifier: Apache-2.0
//
// What a bias lets be seen: whether a tile of 64 queries and 64 keys is -infinity, or 0,
// throughout. A warp looks at one tile, until it knows that it is neither.
#include "attention.h"
#include "kernel.h"

namespace orr_cuda {
namespace {

template <class T>
__device__ void flash_seen(const SeenArgs& a) {
  const int across = (a.keys + kSeenRows - 1) / kSeenRows,
            down = (a.queries + kSeenRows - 1) / kSeenRows;
  const int64_t tile = int64_t(blockIdx.x) * kSeenTiles + int(threadIdx.x) / 32;
  if (tile >= int64_t(across) * down) return;
  const int t0 = int(tile / across) * kSeenRows, lane = int(threadIdx.x) % 32;
  const int s = int(tile % across) * kSeenRows + lane;
  const T* const from = static_cast<const T*>(a.bias.data) +
                        blockIdx.y / unsigned(a.heads) * a.bias.batch +
                        blockIdx.y % unsigned(a.heads) * a.bias.head + t0 * a.bias.row + s;
  bool some = false, zeros = true;  // seen
  for (int t = 0; t < kSeenRows && t0 + t < a.queries && !(some && !zeros); t += 8) {
    bool hides = true;
#pragma unroll
    for (int e = 0; e < 16; ++e) {
      const int row = t + e / 2, column = e % 2 * 32;
      if (t0 + row >= a.queries || s + column >= a.keys) continue;
      const float x = get(from[row * a.bias.row + column]);
      hides = hides && x == -HUGE_VALF;
      zeros = zeros && x == 0.0f;
    }
    some = __ballot_sync(0xffffffffu, !hides) != 0 || some;
    zeros = __ballot_sync(0xffffffffu, !zeros) == 0;
  }
  if (lane == 0)
    a.to[blockIdx.y * int64_t(across) * down + tile] =
        static_cast<unsigned char>(!some   ? kHidden
                                   : zeros ? kOpen
                                           : kBiased);
}

}  // namespace

ORR_KERNEL(flash_seen_bf16, kSeenThreads, SeenArgs, flash_seen<Bf16>)
ORR_KERNEL(flash_seen_f16, kSeenThreads, SeenArgs, flash_seen<F16>)

}  // namespace orr_cuda
