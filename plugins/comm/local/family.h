// SPDX-License-Identifier: Apache-2.0
//
// What all communicators of one world share, and what each of them is to the plugin's table.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "segment.h"

namespace local {

class Mesh;

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
  Family();
  ~Family();

  orr_comm_boot boot{};
  std::string job;
  std::vector<int> host_of;    // by world rank
  Segment world;               // of this host's ranks
  std::unique_ptr<Mesh> mesh;  // null: all ranks are on one host
  bool spin = false;           // every rank of this host has a CPU of its own
  bool attach = false;         // ranks of this host may read and write each other's own memory
  int64_t piece_bytes = 0;     // of an operand of a sum there, at a time
  std::vector<std::unique_ptr<Region>> regions;

  // Ends the world for this reason, unless it has ended before. [any thread]
  void kill(int32_t code, const std::string& text);
  // Throws when the world has ended. [any thread]
  void check_alive() const;
  // Both.
  [[noreturn]] void die(int32_t code, const std::string& text);
  [[noreturn]] void die_of(int dead_rank, const orr_coll* current);
  // Maps what the card of a rank of this host names; dies of that rank if it has ended.
  Mapping open(int64_t card, int rank);

 private:
  std::once_flag own_;  // the end, where the store does not say it
  std::atomic<bool> ended_{false};
  int32_t code_ = 0;
  std::string text_;
};

// Whether the launcher says within a second that the rank has ended: it takes its memory along.
bool has_ended(const orr_comm_boot& boot, int rank);

// A communicator.
class Group {
 public:
  virtual ~Group() = default;
  int rank() const { return rank_; }
  int size() const { return size_; }
  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }
  Family& family() const { return *family_; }

  void run(const orr_coll* ops, int n);
  virtual orr_memory* allocate(uint64_t bytes, bool shared) = 0;
  void free(orr_memory* memory);
  std::unique_ptr<Group> split(int32_t color, int32_t key);

 protected:
  Group(std::shared_ptr<Family> family, std::vector<int> world_of, int rank, uint64_t id);
  // The sends and receives among them.
  virtual void transfer(const orr_coll* ops, int n) = 0;
  virtual void collective(const orr_coll& c) = 0;
  // Every rank's word, by rank; `name` is what the operation is called.
  std::vector<int64_t> gather_words(int64_t mine, const char* name);
  // Throws unless all ranks allocate as much.
  void check_equal(uint64_t bytes);

  std::shared_ptr<Family> family_;
  std::vector<int> world_of_;  // by rank
  int rank_, size_;
  uint64_t id_;
  uint64_t children_ = 0;
  const orr_coll* current_ = nullptr;
  std::atomic<uint64_t> bytes_sent_{0};
};

// Forms the world; collective.
std::unique_ptr<Group> form_world(const orr_comm_boot& boot);

}  // namespace local
