// SPDX-License-Identifier: Apache-2.0
//
// Which of several ways to compute one product is the fastest on this GPU. Measured once for each
// shape: what was found lies in a file of the user's (XDG_CACHE_HOME, else ~/.cache, in orrery/)
// and holds for the same GPU, driver and library.
#pragma once

#include <cublasLt.h>
#include <cuda.h>

#include <functional>
#include <string>
#include <vector>

namespace orr_cuda {

// Memory that a product reads and writes, in bytes.
struct RaceTrack {
  size_t a, b, y, workspace;
  int64_t element;  // bytes of one
};
using RaceLaunch = std::function<void(CUstream, const cublasLtMatmulAlgo_t&, CUdeviceptr a,
                                      CUdeviceptr b, CUdeviceptr y, CUdeviceptr workspace)>;

// `shape` says in one line, without spaces at its end, what `launch` computes. REQUIRES: there are
// candidates; the device is open and current. [main thread]
cublasLtMatmulAlgo_t fastest_of(const std::vector<cublasLtMatmulAlgo_t>& candidates,
                                const std::string& shape, const RaceTrack& track,
                                const RaceLaunch& launch);

}  // namespace orr_cuda
