// SPDX-License-Identifier: Apache-2.0
//
// Measures which of several algorithms for a product is the fastest on this GPU, once for each
// product: the result is kept on disk (disk_cache.h) for the same GPU, driver and library.
#pragma once

#include <cublasLt.h>

#include <functional>
#include <string>
#include <vector>

#include "matmul_layout.h"

namespace orr_cuda {

// The memory that a product reads and writes, in bytes.
struct RaceTrack {
  size_t a, b, y, workspace;
  int32_t dtype;
  // Only algorithms may win that give these first bytes of y the bits that the first one gives
  // them; 0: all may.
  size_t exact;
};
using RaceLaunch = std::function<void(CUstream, const ProductPlaces&, const cublasLtMatmulAlgo_t&)>;

// The fastest of the candidates; the first of them where any may win and nothing can be kept on
// disk, so that ranks of a host have the same bits. `shape` describes in one line what `launch`
// computes. REQUIRES: there are candidates; the device is open and current, and nothing is
// captured. [main thread]
cublasLtMatmulAlgo_t fastest_of(const std::vector<cublasLtMatmulAlgo_t>& candidates,
                                const std::string& shape, const RaceTrack& track,
                                const RaceLaunch& launch);

}  // namespace orr_cuda
