// SPDX-License-Identifier: Apache-2.0
#include "mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <orrery/sdk/plugin.hpp>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace local {
namespace {

[[noreturn]] void refuse(const std::string& what, int error) {
  throw orr::Error(ORR_FAILED, "shared memory: " + what + ": " + std::strerror(error));
}

// Addresses for so many bytes that begin a huge page: only there can shared memory have them.
char* reserve(uint64_t bytes) {
  const uint64_t room = bytes + huge_page;
  void* found = mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(found);
  const uint64_t before = -reinterpret_cast<uint64_t>(begin) % huge_page;
  const uint64_t after = before + (bytes + 4095) / 4096 * 4096;
  if (before > 0) munmap(begin, before);
  if (after < room) munmap(begin + after, room - after);
  return begin + before;
}

char* map(int fd, uint64_t bytes) {
  char* const place = bytes >= huge_page ? reserve(bytes) : nullptr;
  void* base =
      mmap(place, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (place ? MAP_FIXED : 0), fd, 0);
  if (base == MAP_FAILED) refuse("cannot map " + std::to_string(bytes) + " bytes", errno);
  madvise(base, bytes, MADV_HUGEPAGE);
  madvise(base, bytes, MADV_DONTFORK);
  return static_cast<char*>(base);
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept { *this = std::move(other); }

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(fd_, other.fd_);
  return *this;
}

Mapping::~Mapping() {
  close_card();
  if (base_) munmap(base_, bytes_);
}

void Mapping::close_card() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Mapping Mapping::create(uint64_t bytes) {
  Mapping made;
  made.fd_ = memfd_create("orrery", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made.fd_ < 0) refuse("cannot create a memfd", errno);
  if (ftruncate(made.fd_, static_cast<off_t>(bytes)))
    refuse("cannot reserve " + std::to_string(bytes) + " bytes", errno);
  fcntl(made.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  made.base_ = map(made.fd_, bytes);
  made.bytes_ = bytes;
  return made;
}

int64_t Mapping::card() const { return int64_t{getpid()} << 32 | fd_; }

Mapping Mapping::open(int64_t card) {
  const std::string path =
      "/proc/" + std::to_string(card >> 32) + "/fd/" + std::to_string(card & 0xFFFFFFFF);
  Mapping made;
  made.fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (made.fd_ < 0)
    refuse("cannot open " + path +
               " of a peer (who shares memory must run on one host, as one user, in one "
               "process namespace)",
           errno);
  struct stat info {};
  if (fstat(made.fd_, &info)) refuse("cannot stat " + path, errno);
  made.bytes_ = static_cast<uint64_t>(info.st_size);
  made.base_ = map(made.fd_, made.bytes_);
  made.close_card();
  return made;
}

}  // namespace local
