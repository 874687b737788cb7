// SPDX-License-Identifier: Apache-2.0
//
// What torch.save writes since PyTorch 1.6: an archive with a pickle, and the elements of each
// storage.
#pragma once

#include <map>
#include <string>

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

 private:
  std::string root_of(const std::map<std::string, ZipEntry>& entries) const;
  std::string text_of(const ZipEntry& entry) const;

  BytesPtr file_;
  std::map<std::string, SavedTensor> tensors_;
};

}  // namespace data
