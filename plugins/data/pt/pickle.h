// SPDX-License-Identifier: Apache-2.0
//
// The pickle in which torch.save says what is where. Only what holds tensors is read: dictionaries,
// lists, tuples, numbers and texts; a class or a function that is named there is never looked up
// nor called, and is an Error that names it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace data {

struct PickledTensor {
  std::string storage;   // its name in the archive
  std::string elements;  // as NumPy names them
  int64_t element_bytes;
  int64_t offset;                    // elements before the first one
  std::vector<int64_t> dims, steps;  // in elements
};

// All tensors by their places, "model.layers.0.weight": keys of dictionaries, and numbers in lists
// from 0; one that was saved alone is "tensor". Throws Error, which begins with `label`.
std::map<std::string, PickledTensor> pickled_tensors(const std::string& pickle,
                                                     const std::string& label);

}  // namespace data
