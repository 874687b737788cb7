// SPDX-License-Identifier: Apache-2.0
//
// Memory that processes of one host share: a memfd that peers open through /proc/<pid>/fd. It has
// no name, so nothing is left behind whoever is killed when.
#pragma once

#include <cstdint>
#include <string>

namespace shared {

// The running kernel, and the namespaces in which processes and addresses are found: two ranks of
// equal text can open each other's memory, if they are one user's.
//
// For tests, ORRERY_TEST_HOSTS="aab" makes ranks of one host behave as if rank 0 and 1 were on one
// and rank 2 on another; it starts again where it is too short.
std::string host_identity(int rank);
constexpr const char* test_hosts = "ORRERY_TEST_HOSTS";

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

}  // namespace shared
