// SPDX-License-Identifier: Apache-2.0
//
// A file that is either written once and synced, or read. Reads go through pread into memory of our
// own: a file that shrinks under a mapping would end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "store/digest.h"

namespace orrery {

class File {
 public:
  // `label` is what messages call the file. Both throw Error.
  // A new file: one that exists already is an error, so nothing is ever truncated.
  static File create(const std::string& path, const std::string& label);
  // A regular file, `name` inside the directory `at` (AT_FDCWD allowed). With `follow` it may be a
  // symbolic link.
  static File open(int at, const std::string& name, const std::string& label, bool follow);

  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& label() const { return label_; }
  uint64_t size() const { return size_; }  // when opened, or as written
  // Of the bytes written, in order.
  std::string digest() const { return digest_.text(); }

  // Appends all bytes.
  void write(const void* bytes, size_t count);
  // Puts everything on the disk and closes. A failed fsync is final: the kernel may have marked the
  // lost pages clean, so that a second one would succeed and mean nothing.
  void finish();
  // Reads exactly `count` bytes; a file that ends earlier is an error.
  void read(void* bytes, size_t count, uint64_t offset) const;

 private:
  File(int fd, std::string label) : fd_(fd), label_(std::move(label)) {}

  int fd_;
  std::string label_;
  uint64_t size_ = 0;
  Digest digest_;
};

// "No space left on device; free some space or save elsewhere": the words for `error` (an errno)
// when a write did not succeed.
std::string write_error(int error);

// Makes renames and new names in `directory` durable. Throws Error.
void sync_directory(const std::string& directory);

}  // namespace orrery
