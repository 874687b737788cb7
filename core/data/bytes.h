// SPDX-License-Identifier: Apache-2.0
//
// Bytes in memory or in a file, of which datasets read parts. Of a file nothing stays in memory of
// our own, however large it is: the system keeps what is read often.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "store/file.h"

namespace orrery {

class Bytes {
 public:
  Bytes(std::shared_ptr<const std::vector<std::byte>> memory)  // NOLINT: meant to convert
      : memory_(std::move(memory)) {}
  Bytes(File file)  // NOLINT: meant to convert
      : file_(std::make_shared<const File>(std::move(file))) {}

  uint64_t size() const { return file_ ? file_->size() : memory_->size(); }
  bool in_file() const { return file_ != nullptr; }
  // What messages call them: the file.
  std::string label() const { return file_ ? file_->label() : "the array"; }
  // REQUIRES: offset + count <= size(). Throws Error for a file that ended earlier or cannot be
  // read. [any thread]
  void read(std::byte* to, size_t count, uint64_t offset) const;

 private:
  std::shared_ptr<const std::vector<std::byte>> memory_;
  std::shared_ptr<const File> file_;
};

// A regular file that a script names. Throws Error.
Bytes open_bytes(const std::string& path);

}  // namespace orrery
