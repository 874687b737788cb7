// SPDX-License-Identifier: Apache-2.0
//
// The world's communicator and the lane that drives it: one thread that runs posted operations in
// the order of their submission, so that compute goes on meanwhile. A world of one needs neither
// plugin nor thread: its operations are copies.
#pragma once

#include <orrery/comm.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "job/environment.h"
#include "job/store.h"

namespace orrery {

class WorldComm {
 public:
  // Work submitted earlier has smaller tickets and is done earlier.
  using Ticket = uint64_t;

  // Forms the world over the plugin `backend`; collective. Throws Error. [main thread]
  WorldComm(const World& world, const std::string& backend);
  // Finishes what has been submitted. REQUIRES: no buffer of it is gone. [main thread]
  ~WorldComm();
  WorldComm(const WorldComm&) = delete;

  const World& world() const { return world_; }
  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  const orr_comm_caps& caps() const { return caps_; }
  Store& store() { return *store_; }

  // The ranks that give equal colors, in the order of their ranks, as a group of their own: its number
  // for submit. Group 0 is the world. Collective, after all submitted work. [main thread]
  int split(int color);

  // Posts the operations to a group, together. Collectives are numbered here (sends and receives are not: not
  // all ranks take part in them). The descriptors are copied; what they point to is borrowed until the work is done. Never blocks. [compute thread]
  Ticket submit(std::vector<orr_coll> ops, int group = 0);
  // Returns when the work is done; throws Error, the same again and again, once any work has failed.
  // [compute thread]
  void wait(Ticket ticket);
  bool done(Ticket ticket) const;  // or failed [any thread]
  void run(std::vector<orr_coll> ops) { wait(submit(std::move(ops))); }

  // Memory that the ranks of a group use in place, else ordinary memory. Collective over the group,
  // after all submitted work. Freed by `free`, or with this object. [main thread]
  orr_memory* allocate(uint64_t bytes, int group = 0);
  void free(orr_memory* memory);

  uint64_t bytes_sent() const;           // [any thread]
  void abort(const std::string& reason); // pending and later work ends, here and on peers [any thread]

 private:
  void lane();
  Ticket enqueue(std::function<void()> work);
  void execute(const std::vector<orr_coll>& ops, orr_comm* group);
  void drain();

  World world_;
  std::unique_ptr<Store> store_;
  const orr_comm_api* api_ = nullptr;  // null in a world of one
  struct Group {
    orr_comm* comm = nullptr;  // null in a world of one
    uint64_t sequence = 0;
  };
  std::vector<Group> groups_;
  orr_comm_caps caps_{};
  std::vector<std::pair<orr_memory*, int>> memories_;  // and its group

  mutable std::mutex mutex_;
  std::condition_variable posted_, finished_;
  std::deque<std::function<void()>> queue_;
  Ticket submitted_ = 0, completed_ = 0;
  std::exception_ptr error_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace orrery
