// SPDX-License-Identifier: Apache-2.0
//
// The file of products that were measured: a line "SHAPE = ALGORITHM" each, the algorithm as the
// library's own bytes in hexadecimal digits. Its name holds GPU, driver and library, so that what
// another of them chose is not looked at. Ranks and jobs append to it at the same time: lines are
// written whole; of several for one shape the last holds.
#pragma once

#include <cublasLt.h>

#include <map>
#include <string>

namespace orr_cuda {

class ProductCache {
 public:
  // Of the open device. [main thread]
  static ProductCache& get();

  // Whether this was measured to be the shape's fastest algorithm.
  bool holds(const std::string& shape, const cublasLtMatmulAlgo_t& algorithm) const;
  // A file that cannot be written is told once, and measured again next time.
  void keep(const std::string& shape, const cublasLtMatmulAlgo_t& algorithm);

 private:
  ProductCache();
  void read();

  std::string path_;
  std::map<std::string, std::string> found_;  // by shape: hexadecimal digits
  bool told_ = false;
};

}  // namespace orr_cuda
