// SPDX-License-Identifier: Apache-2.0
//
// Files of this host that copies are written to and sent from.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include "../refuse.h"

namespace data {

// An open file. Errors name its path.
class LocalFile {
 public:
  explicit LocalFile(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0) failed("opened");
  }
  ~LocalFile() { ::close(file_); }
  LocalFile(const LocalFile&) = delete;

  void lock() const {
    while (::flock(file_, LOCK_EX) != 0)
      if (errno != EINTR) failed("locked");
  }
  void shorten(int64_t size) const {
    if (::ftruncate(file_, size) != 0 || ::lseek(file_, size, SEEK_SET) < 0) failed("written");
  }
  void write(const char* bytes, size_t count) const {
    while (count > 0) {
      const ssize_t done = ::write(file_, bytes, count);
      if (done < 0 && errno != EINTR) failed("written");
      if (done > 0) bytes += done, count -= static_cast<size_t>(done);
    }
  }
  // Returns how many bytes there were; 0: the file ends there.
  size_t read(char* to, size_t most, int64_t from) const {
    for (;;) {
      const ssize_t done = ::pread(file_, to, most, from);
      if (done >= 0) return static_cast<size_t>(done);
      if (errno != EINTR) failed("read");
    }
  }
  int64_t size() const {
    const off_t end = ::lseek(file_, 0, SEEK_END);
    if (end < 0) failed("read");
    return end;
  }
  void sync() const {
    if (::fsync(file_) != 0) failed("written");
  }

 private:
  [[noreturn]] void failed(const char* what) const {
    fail(ORR_FAILED, path_, " cannot be ", what, ": ", std::strerror(errno),
         "; XDG_CACHE_HOME may name another folder for copies");
  }
  const std::string path_;
  const int file_;
};

}  // namespace data
