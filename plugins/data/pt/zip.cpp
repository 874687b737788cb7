// SPDX-License-Identifier: Apache-2.0
#include "zip.h"

#include <algorithm>

#include "../refuse.h"

namespace data {
namespace {

constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint32_t kCentral = 0x02014b50, kLocal = 0x04034b50;
constexpr size_t kEndBytes = 22, kCentralBytes = 46, kLocalBytes = 30, kLocatorBytes = 20;
constexpr uint64_t kMostDirectory = 64 << 20;

// Numbers in a part of the file that is in memory.
class Numbers {
 public:
  Numbers(const Bytes& file, uint64_t offset, uint64_t bytes) : file_(file) {
    if (offset > file.size() || bytes > file.size() - offset || bytes > kMostDirectory) damaged();
    bytes_.resize(static_cast<size_t>(bytes));
    file.read(bytes_.data(), bytes_.size(), offset);
  }
  [[noreturn]] void damaged() const {
    refuse(file_.label(),
           ": not what torch.save writes, or cut short or altered: it is no zip "
           "archive; restore it, or save it again");
  }
  uint64_t at(size_t place, size_t bytes) const {
    if (place > bytes_.size() || bytes > bytes_.size() - place) damaged();
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes_[place + i]);
    return value;
  }
  std::string text(size_t place, size_t bytes) const {
    if (place > bytes_.size() || bytes > bytes_.size() - place) damaged();
    return bytes_.substr(place, bytes);
  }
  size_t size() const { return bytes_.size(); }

 private:
  const Bytes& file_;
  std::string bytes_;
};

struct Directory {
  uint64_t entries, bytes, offset;
};

Directory directory_of(const Bytes& file) {
  const uint64_t tail = std::min<uint64_t>(file.size(), kEndBytes + kLocatorBytes + 0xffff);
  const Numbers end(file, file.size() - tail, tail);
  size_t at = end.size() < kEndBytes ? 0 : end.size() - kEndBytes;
  while (at > 0 && end.at(at, 4) != kEnd) --at;
  if (end.size() < kEndBytes || end.at(at, 4) != kEnd) end.damaged();
  const Directory found{end.at(at + 10, 2), end.at(at + 12, 4), end.at(at + 16, 4)};
  if (at < kLocatorBytes || end.at(at - kLocatorBytes, 4) != kLocator64) return found;
  const Numbers end64(file, end.at(at - kLocatorBytes + 8, 8), 56);
  if (end64.at(0, 4) != kEnd64) end64.damaged();
  return {end64.at(32, 8), end64.at(40, 8), end64.at(48, 8)};
}

// Numbers that do not fit into four bytes are in a field behind the name, in this order.
void read_large(const Numbers& directory, size_t at, size_t end, uint64_t& bytes, uint64_t& packed,
                uint64_t& local) {
  while (at + 4 <= end) {
    const uint64_t kind = directory.at(at, 2), size = directory.at(at + 2, 2);
    at += 4;
    if (kind == 1) {
      for (uint64_t* number : {&bytes, &packed, &local})
        if (*number == 0xffffffff) *number = directory.at(at, 8), at += 8;
      return;
    }
    at += static_cast<size_t>(size);
  }
}

}  // namespace

std::map<std::string, ZipEntry> zip_entries(const Bytes& file) {
  const Directory where = directory_of(file);
  const Numbers directory(file, where.offset, where.bytes);
  std::map<std::string, ZipEntry> entries;
  size_t at = 0;
  for (uint64_t i = 0; i < where.entries; ++i) {
    if (directory.at(at, 4) != kCentral) directory.damaged();
    uint64_t packed = directory.at(at + 20, 4), bytes = directory.at(at + 24, 4),
             local = directory.at(at + 42, 4);
    const size_t name_bytes = directory.at(at + 28, 2), extra = directory.at(at + 30, 2);
    const std::string name = directory.text(at + kCentralBytes, name_bytes);
    read_large(directory, at + kCentralBytes + name_bytes, at + kCentralBytes + name_bytes + extra,
               bytes, packed, local);
    if (directory.at(at + 10, 2) != 0 || packed != bytes)
      refuse(file.label(), ": '", name, "' is packed; torch.save packs nothing");
    const Numbers head(file, local, kLocalBytes);
    if (head.at(0, 4) != kLocal) head.damaged();
    const uint64_t begin = local + kLocalBytes + head.at(26, 2) + head.at(28, 2);
    if (begin > file.size() || bytes > file.size() - begin) head.damaged();
    entries[name] = {begin, bytes, static_cast<uint32_t>(directory.at(at + 16, 4))};
    at += kCentralBytes + name_bytes + extra + directory.at(at + 32, 2);
  }
  return entries;
}

}  // namespace data
