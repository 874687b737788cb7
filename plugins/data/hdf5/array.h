// SPDX-License-Identifier: Apache-2.0
//
// What a field is read of: an array whose first dim counts the samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace data {

class Array {
 public:
  virtual ~Array() = default;
  // REQUIRES: a Turn.
  virtual void read(int64_t sample, std::byte* to) const = 0;

  int64_t samples() const { return samples_; }
  const std::vector<int64_t>& dims() const { return dims_; }  // of a sample
  const char* elements() const { return elements_; }          // as NumPy names them
  size_t bytes() const { return bytes_; }                     // of a sample

 protected:
  int64_t samples_ = 0;
  std::vector<int64_t> dims_;
  const char* elements_ = "";
  size_t bytes_ = 0;
};

}  // namespace data
