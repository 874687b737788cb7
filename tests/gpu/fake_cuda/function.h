// SPDX-License-Identifier: Apache-2.0
//
// A function of the fake device: how large its arguments are, and what runs it over host memory.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

struct CUfunc_st {
  std::string name;
  std::vector<size_t> sizes;  // of each argument, in bytes
  size_t allowed_shared = 48 << 10;
  size_t row_words = 0, row_addresses = 0;  // as of CompiledKernel
  bool barriers = false;
  std::function<void(dim3 grid, dim3 block, size_t shared, void** arguments)> run;
};

namespace fake {

// What the fake NVRTC writes in place of a cubin: the path of a library follows.
inline constexpr char compiled_magic[] = "FAKE CUBIN\n";

// What such a library tells of each kernel, under the name "fake_kernel_" + its own.
struct CompiledKernel {
  int arguments;
  size_t sizes[4];
  void (*run)(unsigned grid, unsigned block, void** arguments);
  // Of a kernel that gets a table and its number of rows: 64-bit words of a row, and how many of
  // them, its first, are addresses. Else 0.
  size_t row_words, row_addresses;
  // One thread of a block, which is a fiber of the emulator: of a kernel that has barriers. Else
  // null.
  void (*thread)(unsigned block, unsigned thread, void** arguments);
};

// What a library of kernels with barriers has under the name "fake_block": what they call, which
// the loader fills in.
struct CompiledBlock {
  void (*barrier)();
  char* (*memory)();  // the block's dynamic shared memory
};

}  // namespace fake
