// SPDX-License-Identifier: Apache-2.0
//
// What the communicators of a world share.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mapping.h"

namespace local {

// Registered memory: `base[w]` is where world rank w's part is mapped here, or null; one place for
// all in memory that they share.
struct Region {
  orr_memory memory{};
  uint64_t id = 0;
  uint64_t stride = 0;
  Mapping mapping;
  std::vector<char*> base;
};

// One end for all: after a lost peer no communicator can be trusted, and every rank must name the
// same culprit. The job's store tells all ranks the first reason that anybody gives.
struct Family {
  orr_comm_boot boot{};
  std::string job;
  std::vector<int> host_of;  // by world rank
  bool spin = false;         // every rank of this host has a CPU of its own
  bool attach = false;       // ranks of this host may read and write each other's own memory
  std::vector<std::unique_ptr<Region>> regions;

  // Ends the world for this reason, unless it has ended before. [any thread]
  void kill(int32_t code, const std::string& text);
  // Throws when the world has ended. [any thread]
  void check_alive() const;
  // Both.
  [[noreturn]] void die(int32_t code, const std::string& text);
  [[noreturn]] void die_of(int dead_rank, const orr_coll* current);
  // Whether the launcher says within a second that the rank has ended: it takes its memory along.
  bool has_ended(int rank) const;
  // The rank to blame where only the connection that this one has closed shows that it has ended.
  int cause_of(int closed) const;
  // Maps what the card of a rank of this host names; dies of that rank if it has ended.
  Mapping open(int64_t card, int rank);

 private:
  std::once_flag own_;  // the end, where the store does not say it
  std::atomic<bool> ended_{false};
  int32_t code_ = 0;
  std::string text_;
};

// For tests, ORRERY_TEST_HOSTS="aab" makes ranks of one host behave as if rank 0 and 1 were on one
// and rank 2 on another; it starts again where it is too short.
constexpr const char* test_hosts = "ORRERY_TEST_HOSTS";

// The host of each world rank, numbered in the order of their first ranks, by what they themselves
// see of it: a launcher's counts are no proof that one can map the other's memory. Collective.
std::vector<int> find_hosts(const orr_comm_boot& boot);

}  // namespace local
