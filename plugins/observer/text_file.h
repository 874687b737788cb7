// SPDX-License-Identifier: Apache-2.0
//
// A file of a run's directory that observers write to. What does not reach the disk is an error of
// the call that wrote it; the file then ends where the last call that succeeded left it.
#pragma once

#include <orrery/sdk/plugin.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace observer {

// A file that cannot be opened or written. `full`: because there is no room for it.
struct FileError : orr::Error {
  FileError(const char* what, const std::string& path, int error)
      : orr::Error(ORR_FAILED, "cannot " + std::string(what) + " " + path + ": " +
                                   std::strerror(error) + "; check the run directory and its disk"),
        full(error == ENOSPC || error == EDQUOT || error == EFBIG) {}
  bool full;
};

class TextFile {
 public:
  TextFile() = default;
  TextFile(const TextFile&) = delete;
  TextFile& operator=(TextFile&& other) noexcept {
    release();
    path_ = std::move(other.path_), pending_ = std::move(other.pending_);
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~TextFile() { release(); }

  // An empty file, in place of one that is there. Throws FileError, as all below do.
  void open(const std::string& path) { open(path, O_TRUNC); }
  // At the end of a file of lines. A line that a process which was killed left unfinished is cut
  // off.
  void append(const std::string& path) {
    cut_unfinished_line(path);
    open(path, O_APPEND);
    ::lseek(fd_, 0, SEEK_END);
  }
  // Closes the file, if it is open, with all that was written.
  void close() {
    if (fd_ < 0) return;
    flush();
    if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR)
      throw FileError("write", path_, errno);
  }
  explicit operator bool() const { return fd_ >= 0; }

  void write(std::string_view bytes) {
    pending_ += bytes;
    if (pending_.size() >= kMostPending) flush();
  }
  void flush() {
    const off_t before = ::lseek(fd_, 0, SEEK_CUR);  // -1 of a pipe
    for (size_t done = 0; done < pending_.size();) {
      const ssize_t n = ::write(fd_, pending_.data() + done, pending_.size() - done);
      if (n >= 0) done += static_cast<size_t>(n);
      if (n < 0 && errno != EINTR) fail("write", before);
    }
    pending_.clear();
  }
  // What was written waits no longer than a second of `time`, in unix seconds.
  void flush_in_time(double time) {
    if (time - flushed_ >= 0 && time - flushed_ < 1) return;
    flushed_ = time;
    flush();
  }
  // REQUIRES: flushed.
  int64_t at() const { return ::lseek(fd_, 0, SEEK_CUR); }
  void seek(int64_t at) {
    flush();
    if (::lseek(fd_, at, SEEK_SET) < 0) fail("write", -1);
  }

 private:
  static constexpr size_t kMostPending = 1 << 16;

  void open(const std::string& path, int how) {
    close();
    path_ = path, flushed_ = -1e300;
    fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
    if (fd_ < 0) fail("open", -1);
  }

  static void cut_unfinished_line(const std::string& path) {
    // O_NONBLOCK: opening a pipe must not wait for its reader.
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    const off_t size = ::lseek(fd, 0, SEEK_END);  // -1 if there is none, or of a pipe
    off_t end = size;
    char last = 0;
    while (end > 0 && ::pread(fd, &last, 1, end - 1) == 1 && last != '\n') --end;
    // What cannot be cut is said by the open that follows.
    if (end < size && ::ftruncate(fd, end) != 0) errno = 0;
    if (fd >= 0) ::close(fd);
  }

  void release() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    pending_.clear();
  }

  // The end of a regular file goes back to `end`, if that is not negative.
  [[noreturn]] void fail(const char* what, off_t end) {
    const int error = errno;
    if (end >= 0 && ::ftruncate(fd_, end) != 0) errno = error;  // then a part of it stays
    release();
    throw FileError(what, path_, error);
  }

  std::string path_, pending_;
  double flushed_ = -1e300;  // by flush_in_time
  int fd_ = -1;
};

// A file of this text, in place of what is there: no reader sees a part of it.
inline void replace_file(const std::string& path, std::string_view text) {
  const std::string part = path + ".part";
  TextFile file;
  file.open(part);
  file.write(text);
  file.close();
  if (std::rename(part.c_str(), path.c_str()) != 0) throw FileError("write", path, errno);
}

}  // namespace observer
