// SPDX-License-Identifier: Apache-2.0
//
// Memory that processes of one host share: a memfd that peers open through /proc/<pid>/fd. It has
// no name, so nothing is left behind whoever is killed when.
#pragma once

#include <cstdint>

namespace local {

constexpr uint64_t huge_page = 2 << 20;

// Page-aligned shared memory, mapped by every process.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;
  ~Mapping();

  // Makes zeroed memory; its card, for peers to open it by, is good until close_card.
  static Mapping create(uint64_t bytes);
  // Maps what `card` of another process names. Throws when that is out of reach.
  static Mapping open(int64_t card);

  int64_t card() const;  // process id and descriptor
  void close_card();
  char* base() const { return base_; }
  uint64_t bytes() const { return bytes_; }

 private:
  char* base_ = nullptr;
  uint64_t bytes_ = 0;
  int fd_ = -1;
};

}  // namespace local
