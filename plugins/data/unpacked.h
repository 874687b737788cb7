// SPDX-License-Identifier: Apache-2.0
//
// What readers of packed files have in common.
#pragma once

#include <cstddef>
#include <vector>

#include "bytes.h"

namespace data {

constexpr size_t kPackedPiece = size_t{1} << 18;  // bytes that are unpacked in one call

// What has been unpacked so far, of a file whose unpacked size nothing says.
class Unpacked {
 public:
  explicit Unpacked(const Bytes& file) : file_(file) {}

  // Where the next kPackedPiece bytes go. Throws if the machine's memory cannot hold them.
  std::byte* room() {
    if (bytes_.size() - size_ < kPackedPiece) {
      const size_t larger = 2 * bytes_.size() + kPackedPiece;
      check_memory(larger, file_.label());
      bytes_.resize(larger);
    }
    return bytes_.data() + size_;
  }
  void add(size_t count) { size_ += count; }
  std::vector<std::byte> all() {
    bytes_.resize(size_);
    return std::move(bytes_);
  }

 private:
  const Bytes& file_;
  std::vector<std::byte> bytes_;
  size_t size_ = 0;
};

// What zstd has packed, unpacked. Throws for a file that is cut short or altered, and where Orrery
// was built without libzstd.
std::vector<std::byte> unpack_zstd(const Bytes& file);

}  // namespace data
