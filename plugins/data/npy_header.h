// SPDX-License-Identifier: Apache-2.0
//
// What stands before the elements in a .npy file: magic, version, a Python dictionary.
#pragma once

#include "bytes.h"

namespace data {

struct NpyArray {
  BytesPtr bytes;
  std::string elements;  // as NumPy names them
  int64_t element_bytes = 0;
  std::vector<int64_t> dims;
  bool in_columns = false;  // Fortran order: the first dim's index counts fastest
  uint64_t offset = 0;      // of the first element
};

// Throws Error, which names the file and the value, for a header that NumPy would refuse, and for
// elements that no tensor holds.
NpyArray npy_in(BytesPtr file);
NpyArray open_npy(const std::string& path);

}  // namespace data
