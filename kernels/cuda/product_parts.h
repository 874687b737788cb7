// SPDX-License-Identifier: Apache-2.0
//
// A product in two parts, where cuBLASLt is slow for the whole: it has fast algorithms only for
// operands whose elements side by side are a multiple of 16 bytes, however far rows are apart. (On
// an H200, [65536, 768] x [768, 50257] took 49 ms, and 7 ms with 50,256 columns.) The dim is cut at
// the largest such multiple; a kernel of the plugin computes the rest (device/rest.cu). Of a cut K
// the rest comes first, and the other part adds to it, so that no sum of many terms is rounded
// twice.
#pragma once

#include <vector>

#include "matmul_layout.h"

namespace orr_cuda {

struct ProductPart {
  MatmulShape shape;
  int64_t a, b, y;  // bytes from the beginning of each operand
  bool adds;        // to what is in y
  bool rest;        // of less than 16 bytes in the dim that is cut
};

// The parts, in order: one if the product is computed as a whole. A sum over leaves is not cut.
std::vector<ProductPart> parts_of(const MatmulShape& shape, bool over_leaves);

}  // namespace orr_cuda
