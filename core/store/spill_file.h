// SPDX-License-Identifier: Apache-2.0
//
// A file for bytes that a process keeps on a disk instead of in memory, as long as it runs. The
// file is unlinked as soon as it is made, so nothing stays behind however the process ends. It is
// read and written with pread and pwrite, not mapped, so it does not count as memory of the
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery {

class SpillFile {
 public:
  // Makes a file of zeros and allocates its space on the disk at once: a disk that is too small is
  // an error here, not in the middle of a step. Throws Error.
  SpillFile(const std::string& directory, uint64_t bytes);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;

  // Read and write `count` bytes; throw Error. REQUIRES: these bytes are in the file. [any thread]
  void read(void* to, size_t count, uint64_t offset) const;
  void write(const void* from, size_t count, uint64_t offset);

 private:
  [[noreturn]] void refuse(const char* what, const std::string& why) const;

  std::string directory_;
  uint64_t bytes_;
  int fd_ = -1;
};

}  // namespace orrery
