// SPDX-License-Identifier: Apache-2.0
//
// Bytes in files or in memory, of which datasets read parts. Files are read, not mapped: of a
// mapped file that another process shortens, an access would end this process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace data {

class Bytes {
 public:
  // A regular file. Errors name it by its path.
  static std::shared_ptr<const Bytes> open(const std::string& path);
  // Bytes in memory, which messages call `label`.
  Bytes(std::vector<std::byte> memory, std::string label);
  // Those of `whole` from `offset` on. REQUIRES: offset <= whole->size().
  static std::shared_ptr<const Bytes> behind(std::shared_ptr<const Bytes> whole, uint64_t offset);
  // `count` of them from `offset` on. REQUIRES: offset + count <= whole->size().
  static std::shared_ptr<const Bytes> part(std::shared_ptr<const Bytes> whole, uint64_t offset,
                                           uint64_t count);
  // Those of all parts, one after another. Errors of reading name the part.
  explicit Bytes(std::vector<std::shared_ptr<const Bytes>> parts);
  ~Bytes();
  Bytes(const Bytes&) = delete;

  const std::string& label() const { return label_; }
  uint64_t size() const { return size_; }
  // Whether some of them are.
  bool in_file() const;
  // REQUIRES: offset + count <= size(). Throws for a file that has become shorter. [any thread]
  void read(void* to, size_t count, uint64_t offset) const;
  // All of them. Throws if the machine's memory cannot hold them.
  std::vector<std::byte> all() const;

 private:
  explicit Bytes(std::string label) : label_(std::move(label)) {}
  void read_parts(std::byte* to, size_t count, uint64_t offset) const;

  std::string label_;
  int file_ = -1;
  uint64_t size_ = 0;
  std::vector<std::byte> memory_;
  std::vector<std::shared_ptr<const Bytes>> parts_;
  uint64_t skipped_ = 0;  // of the parts
};

using BytesPtr = std::shared_ptr<const Bytes>;

// Throws for more bytes than the machine's memory has.
void check_memory(uint64_t bytes, const std::string& label);

// A file that may be packed by gzip or zstd, known by its first bytes: then what is in it, unpacked
// into memory. Throws for a packed file that is cut short or altered.
BytesPtr open_unpacked(const std::string& path);

}  // namespace data
