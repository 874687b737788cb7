// SPDX-License-Identifier: Apache-2.0
//
// How a pointwise op reads and writes its tensors: without dims of extent 1, with neighbouring dims
// joined if every tensor allows it, and how many elements a thread handles at a time.
#pragma once

#include <orrery/kernel.h>

#include <vector>

namespace orr_cuda {

struct Walk {
  // Throws Unsupported if the tensors do not fit together.
  explicit Walk(const orr_op& op);
  bool is_flat() const { return dims.size() == 1; }
  int64_t last(const std::vector<int64_t>& strides) const;  // offset of a tensor's last element

  int64_t elements;                           // of the output
  std::vector<int64_t> dims;                  // at least one
  std::vector<std::vector<int64_t>> strides;  // [tensor][dim], inputs first; 0 repeats
  int vector;                                 // elements per thread; 1 if strides forbid more
  bool wide;                                  // offsets need 64 bits
};

}  // namespace orr_cuda
