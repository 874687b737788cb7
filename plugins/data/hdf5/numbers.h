// SPDX-License-Identifier: Apache-2.0
//
// A dataset of numbers in a file of HDF5.
#pragma once

#include <optional>

#include "array.h"
#include "chunks.h"
#include "library.h"

namespace data {

class Numbers : public Array {
 public:
  // `subject` begins messages: the file and the dataset. Throws Error for what is no array of
  // numbers. REQUIRES: a Turn.
  Numbers(HeldSet set, std::string subject);
  void read(int64_t sample, std::byte* to) const override;

 private:
  void find_dims();
  void find_elements();
  [[noreturn]] void refuse_elements(const char* what) const;

  std::string subject_;
  HeldSet set_;
  HeldSpace in_file_, in_memory_;
  HeldType type_;  // in memory
  mutable std::optional<Chunks> chunks_;
};

}  // namespace data
