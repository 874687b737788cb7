// SPDX-License-Identifier: Apache-2.0
//
// How a pointwise op reads and writes its tensors: without dims of extent 1, with neighbouring dims
// joined if every tensor allows it, and how many elements a thread handles at a time.
#pragma once

#include <cuda.h>
#include <orrery/kernel.h>

#include <vector>

namespace orr_cuda {

// Which bytes a tensor has behind its address.
struct Reach {
  uint64_t bytes;                // to the end of its last element
  uint64_t run = 0, period = 0;  // of these so many at the beginning of each period; 0: all

  explicit Reach(uint64_t bytes) : bytes(bytes) {}
  Reach(uint64_t bytes, uint64_t run, uint64_t period) : bytes(bytes), run(run), period(period) {}
};

struct Walk {
  // Throws Unsupported if the tensors do not fit together.
  explicit Walk(const orr_op& op);
  // With vectors that do not reach over the end of a row of `columns`.
  Walk(const orr_op& op, int64_t columns);
  bool is_flat() const { return dims.size() == 1; }
  int64_t last(const std::vector<int64_t>& strides) const;  // offset of a tensor's last element
  Reach reach(size_t tensor) const;
  // Whether one load or store of `vector` elements fits the address of every tensor; others may
  // follow.
  bool aligned(const std::vector<CUdeviceptr>& addresses) const;

  int64_t elements;                           // of the output
  std::vector<int64_t> dims;                  // at least one
  std::vector<std::vector<int64_t>> strides;  // [tensor][dim], inputs first; 0 repeats
  std::vector<int64_t> bytes;                 // of an element of each tensor
  int vector;                                 // elements per thread; 1 if strides forbid more
  bool wide;                                  // offsets need 64 bits
};

}  // namespace orr_cuda
