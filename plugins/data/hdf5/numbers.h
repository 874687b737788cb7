// SPDX-License-Identifier: Apache-2.0
//
// A dataset of numbers in a file of HDF5, of which the first dim counts the samples.
#pragma once

#include <cstdint>
#include <vector>

#include "library.h"

namespace data {

class Numbers {
 public:
  // `subject` begins messages: the file and the dataset. Throws Error for what is no array of
  // numbers, and for one whose numbers are in other files. REQUIRES: a Turn.
  Numbers(hid_t file, const std::string& dataset, std::string subject);

  int64_t samples() const { return samples_; }
  const std::vector<int64_t>& dims() const { return dims_; }  // of a sample
  const char* elements() const { return elements_; }          // as NumPy names them
  size_t bytes() const { return bytes_; }                     // of a sample
  // REQUIRES: a Turn.
  void read(int64_t sample, std::byte* to) const;

 private:
  void open(hid_t file, const std::string& dataset);
  void find_dims();
  void find_elements();
  [[noreturn]] void refuse_elements(const char* what) const;

  std::string subject_;
  HeldSet set_;
  HeldSpace in_file_, in_memory_;
  HeldType type_;  // in memory
  const char* elements_ = "";
  int64_t samples_ = 0;
  std::vector<int64_t> dims_;
  size_t bytes_ = 0;
};

}  // namespace data
