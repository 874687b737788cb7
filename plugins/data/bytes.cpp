// SPDX-License-Identifier: Apache-2.0
#include "bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "refuse.h"

namespace data {
namespace {

constexpr size_t kMostPerCall = size_t{1} << 30;  // Linux moves at most 2 GiB in one call

const char* remedy(int error) {
  if (error == EACCES || error == EPERM) return "; ask its owner for leave to read it";
  if (error == ENOENT) return "; restore it from a copy or check the path";
  return "; restore it from a copy";
}

}  // namespace

BytesPtr Bytes::open(const std::string& path) {
  std::shared_ptr<Bytes> bytes(new Bytes(path));
  // O_NONBLOCK: opening a pipe must not wait for its writer; regular files ignore it.
  bytes->file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (bytes->file_ < 0 && errno == ENOENT) fail(ORR_FAILED, path, " is missing", remedy(ENOENT));
  struct stat facts;
  if (bytes->file_ < 0 || ::fstat(bytes->file_, &facts) != 0)
    fail(ORR_FAILED, path, " cannot be opened: ", std::strerror(errno), remedy(errno));
  if (!S_ISREG(facts.st_mode))
    fail(ORR_FAILED, path, " is not a regular file; give the path of a file");
  bytes->size_ = static_cast<uint64_t>(facts.st_size);
  return bytes;
}

Bytes::Bytes(std::vector<std::byte> memory, std::string label)
    : label_(std::move(label)), size_(memory.size()), memory_(std::move(memory)) {}

BytesPtr Bytes::behind(BytesPtr whole, uint64_t offset) {
  const uint64_t count = whole->size() - offset;
  return part(std::move(whole), offset, count);
}

BytesPtr Bytes::part(BytesPtr whole, uint64_t offset, uint64_t count) {
  std::shared_ptr<Bytes> part(new Bytes(whole->label()));
  part->size_ = count, part->skipped_ = offset;
  part->parts_ = {std::move(whole)};
  return part;
}

Bytes::Bytes(std::vector<std::shared_ptr<const Bytes>> parts)
    : label_(std::to_string(parts.size()) + " files"), parts_(std::move(parts)) {
  for (const auto& part : parts_) size_ += part->size();
}

Bytes::~Bytes() {
  if (file_ >= 0) ::close(file_);
}

bool Bytes::in_file() const {
  return file_ >= 0 || std::any_of(parts_.begin(), parts_.end(),
                                   [](const auto& part) { return part->in_file(); });
}

void Bytes::read_parts(std::byte* to, size_t count, uint64_t offset) const {
  for (const auto& part : parts_) {
    if (offset < part->size()) {
      const size_t here = std::min<uint64_t>(count, part->size() - offset);
      part->read(to, here, offset);
      to += here, count -= here, offset += here;
    }
    offset -= part->size();
    if (count == 0) return;
  }
}

void Bytes::read(void* place, size_t count, uint64_t offset) const {
  auto* to = static_cast<std::byte*>(place);
  if (!parts_.empty()) return read_parts(to, count, offset + skipped_);
  if (file_ < 0) {
    std::memcpy(to, memory_.data() + offset, count);
    return;
  }
  while (count > 0) {
    const ssize_t done =
        ::pread(file_, to, std::min(count, kMostPerCall), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0)
      fail(ORR_FAILED, label_, " cannot be read: ", std::strerror(errno), remedy(errno));
    if (done == 0)
      fail(ORR_FAILED, label_, " became shorter while it was read: it ends at byte ", offset,
           remedy(0));
    to += done;
    offset += static_cast<uint64_t>(done);
    count -= static_cast<size_t>(done);
  }
}

std::vector<std::byte> Bytes::all() const {
  check_memory(size_, label_);
  std::vector<std::byte> bytes(size_);
  read(bytes.data(), bytes.size(), 0);
  return bytes;
}

void check_memory(uint64_t bytes, const std::string& label) {
  const auto most =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (bytes > most)
    refuse(label, ": has ", bytes, " bytes, more than the ", most, " of the memory");
}

}  // namespace data
