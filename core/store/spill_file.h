// SPDX-License-Identifier: Apache-2.0
//
// Bytes that a process keeps on a disk instead of in memory, for as long as it runs. The file loses
// its name as soon as it is made, so that nothing stays behind however the process ends; what is
// moved goes through pread and pwrite, so that it does not count as memory of the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery {

class SpillFile {
 public:
  // Zeros, with their room on the disk taken at once: a disk that is too small is an error here,
  // not in the middle of a step. Throws Error.
  SpillFile(const std::string& directory, uint64_t bytes);
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;

  // All `count` bytes; throw Error. REQUIRES: they lie in the file. [any thread]
  void read(void* to, size_t count, uint64_t offset) const;
  void write(const void* from, size_t count, uint64_t offset);

 private:
  [[noreturn]] void refuse(const char* what, const std::string& why) const;

  std::string directory_;
  uint64_t bytes_;
  int fd_ = -1;
};

}  // namespace orrery
