// SPDX-License-Identifier: Apache-2.0
#include "store/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "store/file.h"

namespace orrery {
namespace {

constexpr size_t kMostPerCall = size_t{1} << 30;  // Linux moves at most 2 GiB in one call

}  // namespace

SpillFile::SpillFile(const std::string& directory, uint64_t bytes)
    : directory_(directory), bytes_(bytes) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) refuse("be made", write_error(error.value()));
  std::string name = directory + "/offload.XXXXXX";
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) refuse("be made", write_error(errno));
  ::unlink(name.c_str());
  int status = ::posix_fallocate(fd_, 0, static_cast<off_t>(bytes));
  if (status) {
    ::close(fd_);
    refuse("be made", write_error(status));
  }
}

SpillFile::~SpillFile() { ::close(fd_); }

void SpillFile::refuse(const char* what, const std::string& why) const {
  fail(ORR_FAILED, "offload: a file of {} in '{}' cannot {}: {}",
       human_bytes(static_cast<double>(bytes_)), directory_, what, why);
}

void SpillFile::read(void* to, size_t count, uint64_t offset) const {
  for (auto* at = static_cast<char*>(to); count > 0;) {
    ssize_t done = ::pread(fd_, at, std::min(count, kMostPerCall), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) refuse("be read", std::string(std::strerror(errno)) + "; check the disk");
    if (done == 0) refuse("be read", "it became shorter");
    at += done, offset += static_cast<uint64_t>(done), count -= static_cast<size_t>(done);
  }
}

void SpillFile::write(const void* from, size_t count, uint64_t offset) {
  for (auto* at = static_cast<const char*>(from); count > 0;) {
    ssize_t done = ::pwrite(fd_, at, std::min(count, kMostPerCall), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) refuse("be written", write_error(errno));
    at += done, offset += static_cast<uint64_t>(done), count -= static_cast<size_t>(done);
  }
}

}  // namespace orrery
