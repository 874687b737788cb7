// SPDX-License-Identifier: Apache-2.0
//
// The file with the fastest algorithms that were measured: a line "SHAPE = ALGORITHM" for each
// product, with the library's bytes of the algorithm in hexadecimal digits. The file's name
// contains GPU, driver and library, because the results hold only for these. Ranks and jobs append
// to it at the same time: lines are written as a whole, and the last line for a shape counts.
#pragma once

#include <cublasLt.h>

#include <map>
#include <string>

namespace orr_cuda {

class ProductCache {
 public:
  // The cache of the open device. [main thread]
  static ProductCache& get();

  // Whether the file names this algorithm as the fastest for the shape.
  bool holds(const std::string& shape, const cublasLtMatmulAlgo_t& algorithm) const;
  // Adds a result. If the file cannot be written, that is logged once, and the next process
  // measures again.
  void keep(const std::string& shape, const cublasLtMatmulAlgo_t& algorithm);

 private:
  ProductCache();
  void read();

  std::string path_;
  std::map<std::string, std::string> found_;  // by shape: hexadecimal digits
  bool told_ = false;
};

}  // namespace orr_cuda
