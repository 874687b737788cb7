// SPDX-License-Identifier: Apache-2.0
//
// What torch.save writes since PyTorch 1.6: an archive with a pickle, and the elements of each
// storage.
#pragma once

#include <map>
#include <string>
#include <variant>

#include "../bytes.h"
#include "pickle.h"
#include "zip.h"

namespace data {

struct SavedTensor {
  PickledTensor tensor;
  uint64_t begin;  // of its first element in the file
};

class Archive {
 public:
  // All tensors, or the one of this name. Throws Error, which begins with the file's label, for
  // what is none, damaged, or holds anything else.
  explicit Archive(BytesPtr file, const std::string& only = "");

  const std::map<std::string, SavedTensor>& tensors() const { return tensors_; }
  // Writes its elements, row by row. Returns where the next one goes. [any thread]
  std::byte* read(const SavedTensor& saved, std::byte* to) const;
  // Whether they lie row by row, and `count` of them from the `first` one on, if they do.
  static bool is_in_rows(const SavedTensor& saved);
  void read_rows(const SavedTensor& saved, uint64_t first, uint64_t count, std::byte* to) const;

 private:
  BytesPtr file_;
  std::map<std::string, SavedTensor> tensors_;
};

// Throws Error unless all data of an archive are those that were saved, as its CRC-32 tell.
void verify_archive(const Bytes& file);

// A whole number or a text that was saved alone. Throws Error for anything else.
std::variant<int64_t, std::string> saved_value(BytesPtr file);

}  // namespace data
