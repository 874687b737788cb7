// SPDX-License-Identifier: Apache-2.0
//
// Measures which of several algorithms for a product is the fastest on this GPU, once for each
// shape. Results are kept in a file of the user (in orrery/ in XDG_CACHE_HOME, or else ~/.cache)
// and used for the same GPU, driver and library.
#pragma once

#include <cublasLt.h>
#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

namespace orr_cuda {

// The memory that a product reads and writes, in bytes.
struct RaceTrack {
  size_t a, b, y, workspace;
  int64_t element;  // bytes of one
};
using RaceLaunch = std::function<void(CUstream, const cublasLtMatmulAlgo_t&, CUdeviceptr a,
                                      CUdeviceptr b, CUdeviceptr y, CUdeviceptr workspace)>;

// The fastest of the candidates. `shape` describes in one line, without spaces at its end, what
// `launch` computes. REQUIRES: there are candidates; the device is open and current. [main thread]
cublasLtMatmulAlgo_t fastest_of(const std::vector<cublasLtMatmulAlgo_t>& candidates,
                                const std::string& shape, const RaceTrack& track,
                                const RaceLaunch& launch);

}  // namespace orr_cuda
