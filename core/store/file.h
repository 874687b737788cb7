// SPDX-License-Identifier: Apache-2.0
//
// A file that is either written once and synced, or read. Reads use pread into memory of our own:
// if the file were mapped and another process shortened it, an access would end this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/digest.h"

namespace orrery {

class File {
 public:
  // Both functions throw Error; `label` names the file in messages.
  // Creates a new file. If the file exists, that is an error, so nothing is ever truncated.
  static File create(const std::string& path, const std::string& label);
  // Opens the regular file `name` in the directory `at` (AT_FDCWD is allowed). With `follow` it may
  // be a symbolic link.
  static File open(int at, const std::string& name, const std::string& label, bool follow);

  File(File&& other) noexcept;
  File& operator=(File&&) = delete;
  ~File();

  const std::string& label() const { return label_; }
  uint64_t size() const { return size_; }  // when it was opened, or written so far
  // The digest of the bytes written, in order.
  std::string digest() const { return digest_.text(); }

  // Appends all bytes.
  void write(const void* bytes, size_t count);
  // Syncs the file to the disk and closes it. A failed fsync must not be repeated: the kernel may
  // have marked the lost pages clean, so that the second call would succeed without writing them.
  void finish();
  // Reads exactly `count` bytes; a file that ends earlier is an error. A disk or server that fails
  // for a moment is asked again, here and in `open`.
  void read(void* bytes, size_t count, uint64_t offset) const;

 private:
  File(int fd, std::string label) : fd_(fd), label_(std::move(label)) {}

  int fd_;
  std::string label_;
  uint64_t size_ = 0;
  Digest digest_;
};

// The digest of a whole file, which is read for it.
std::string digest_of(const File& file);

// Says something on stderr, each text once in a process. [any thread]
void tell_once(const std::string& text);

// The text for `error` (an errno) of a failed write: "No space left on device; free some space or
// save elsewhere".
std::string write_error(int error);

// Makes renames and new names in the directory durable. Throws Error.
void sync_directory(const std::string& directory);

}  // namespace orrery
