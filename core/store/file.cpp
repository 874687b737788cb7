// SPDX-License-Identifier: Apache-2.0
#include "store/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace orrery {
namespace {

constexpr size_t kMostPerCall = size_t{1} << 30;  // Linux moves at most 2 GiB in one call

bool is_full(int error) { return error == ENOSPC || error == EDQUOT; }

// Whether what failed may succeed in a moment, as with a server of files that begins again.
bool may_pass(int error) { return error == EIO || error == ETIMEDOUT || error == ESTALE; }

const char* read_remedy(int error) {
  if (error == ELOOP) return "; it must be a file, not a symbolic link: copy the file itself";
  if (error == EACCES || error == EPERM) return "; ask its owner for leave to read it";
  if (error == ENOENT) return "; restore it from a copy or check the path";
  if (may_pass(error)) return "; check the disk, and try again";
  return "; restore it from a copy";
}

// Calls `attempt` until it returns no such error, up to five times within about 3 s.
int patiently(const std::string& label, const std::function<int()>& attempt) {
  int error = attempt();
  for (int wait = 100; wait <= 1600 && may_pass(error); wait *= 2, error = attempt()) {
    tell_once(
        fmt::format("{} cannot be read at once: {}; trying again", label, std::strerror(error)));
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
  }
  return error;
}

}  // namespace

void tell_once(const std::string& text) {
  static std::mutex mutex;
  static std::set<std::string> told;
  const std::lock_guard lock(mutex);
  if (told.insert(text).second) fmt::print(stderr, "orrery: {}\n", text);
}

std::string write_error(int error) {
  std::string text = std::strerror(error);
  if (is_full(error)) return text + "; free some space or save elsewhere";
  if (error == EFBIG) return text + "; raise the limit on file sizes (ulimit -f) or save elsewhere";
  if (error == EACCES || error == EPERM || error == EROFS)
    return text + "; make the place writable or save elsewhere";
  return text + "; check the disk or save elsewhere";
}

File File::create(const std::string& path, const std::string& label) {
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) fail(ORR_FAILED, "{} cannot be created: {}", label, write_error(errno));
  return File(fd, label);
}

File File::open(int at, const std::string& name, const std::string& label, bool follow) {
  // O_NONBLOCK: opening a pipe must not wait for its writer; regular files ignore it.
  int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
  int fd = -1;
  const int error = patiently(label, [&] {
    fd = ::openat(at, name.c_str(), flags);
    return fd < 0 ? errno : 0;
  });
  if (error == ENOENT) fail(ORR_FAILED, "{} is missing{}", label, read_remedy(ENOENT));
  if (error)
    fail(ORR_FAILED, "{} cannot be opened: {}{}", label, std::strerror(error), read_remedy(error));
  File file(fd, label);
  struct stat facts;
  if (::fstat(fd, &facts) != 0)
    fail(ORR_FAILED, "{} cannot be read: {}{}", label, std::strerror(errno), read_remedy(errno));
  if (!S_ISREG(facts.st_mode))
    fail(ORR_FAILED, "{} is not a regular file; give the path of a file", label);
  file.size_ = static_cast<uint64_t>(facts.st_size);
  return file;
}

File::File(File&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      label_(std::move(other.label_)),
      size_(other.size_),
      digest_(std::move(other.digest_)) {}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

void File::write(const void* bytes, size_t count) {
  auto* from = static_cast<const char*>(bytes);
  while (count > 0) {
    ssize_t done = ::write(fd_, from, std::min(count, kMostPerCall));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(ORR_FAILED, "{} cannot be written: {}", label_, write_error(errno));
    digest_.add(from, static_cast<size_t>(done));
    size_ += static_cast<uint64_t>(done);
    from += done;
    count -= static_cast<size_t>(done);
  }
}

void File::finish() {
  if (::fsync(fd_) != 0)
    fail(ORR_FAILED, "{} cannot be put on the disk: {}", label_, write_error(errno));
  if (::close(std::exchange(fd_, -1)) != 0)
    fail(ORR_FAILED, "{} cannot be closed: {}", label_, write_error(errno));
}

void File::read(void* bytes, size_t count, uint64_t offset) const {
  auto* to = static_cast<char*>(bytes);
  while (count > 0) {
    ssize_t done = 0;
    const int error = patiently(label_, [&] {
      done = ::pread(fd_, to, std::min(count, kMostPerCall), static_cast<off_t>(offset));
      return done < 0 ? errno : 0;
    });
    if (error == EINTR) continue;
    if (error)
      fail(ORR_FAILED, "{} cannot be read: {}{}", label_, std::strerror(error), read_remedy(error));
    if (done == 0)
      fail(ORR_FAILED, "{} became shorter while it was read: it ends at byte {}{}", label_, offset,
           read_remedy(0));
    to += done;
    offset += static_cast<uint64_t>(done);
    count -= static_cast<size_t>(done);
  }
}

std::string digest_of(const File& file) {
  Digest digest;
  std::vector<std::byte> some(size_t{1} << 20);
  for (uint64_t at = 0; at < file.size(); at += some.size()) {
    const uint64_t count = std::min<uint64_t>(some.size(), file.size() - at);
    file.read(some.data(), count, at);
    digest.add(some.data(), count);
  }
  return digest.text();
}

void sync_directory(const std::string& directory) {
  int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = fd < 0 || ::fsync(fd) != 0 ? errno : 0;
  if (fd >= 0) ::close(fd);
  if (error)
    fail(ORR_FAILED, "directory '{}' cannot be put on the disk: {}", directory, write_error(error));
}

}  // namespace orrery
