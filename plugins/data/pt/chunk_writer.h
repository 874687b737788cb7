// SPDX-License-Identifier: Apache-2.0
//
// Writes a file of a torch.distributed.checkpoint: archives such as torch.save writes, one behind
// another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elements.h"

namespace data {

class ChunkWriter {
 public:
  // Creates a new file. Throws Error, which names it, here and below.
  explicit ChunkWriter(const std::string& path);
  ~ChunkWriter();
  ChunkWriter(const ChunkWriter&) = delete;

  // Appends a tensor of contiguous elements.
  void tensor(const TorchElements& kind, const std::vector<int64_t>& dims, const void* elements);
  // Appends a pickle.
  void value(const std::string& pickle);
  uint64_t bytes() const { return bytes_; }  // so far
  // Syncs and closes it.
  void finish();

 private:
  struct Part {
    std::string name;
    const void* bytes;
    uint64_t count;
  };
  void archive(const std::vector<Part>& parts);
  void write(const void* bytes, uint64_t count);
  [[noreturn]] void cannot(const char* what) const;

  std::string path_;
  int file_;
  uint64_t bytes_ = 0;
};

}  // namespace data
