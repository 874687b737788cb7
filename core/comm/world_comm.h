// SPDX-License-Identifier: Apache-2.0
//
// The world's communicator and the lane that drives it: one thread that runs posted operations in
// the order of their submission, so that compute goes on meanwhile. A world of one needs neither
// plugin nor thread: its operations are copies.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/lane.h"
#include "launch/environment.h"
#include "launch/store.h"

namespace orrery {

struct Composition;  // comm/composition.h
struct SpotFold;

class WorldComm {
 public:
  using Ticket = Lane::Ticket;

  // Forms the world over the plugin `backend`; collective. Throws Error. [main thread]
  // `link_speed` in bytes a second, unless 0: every operation takes at least as long as over such a
  // link. `store`: the job's, if it is open already.
  WorldComm(const World& world, const std::string& backend, uint64_t link_speed = 0,
            std::unique_ptr<Store> store = nullptr);
  // Finishes what has been submitted. REQUIRES: no buffer of it is gone. [main thread]
  ~WorldComm();
  WorldComm(const WorldComm&) = delete;

  const World& world() const { return world_; }
  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  const orr_comm_caps& caps() const { return caps_; }
  Store& store() { return *store_; }

  // The ranks that give equal colors, in the order of their keys, as a group of their own: its
  // number for submit. Color -1 is in none and must not submit to it. Group 0 is the world.
  // Collective, after all submitted work. [main thread]
  int split(int color, int key);
  int rank(int group) const { return groups_[static_cast<size_t>(group)].rank; }  // -1: in none
  int size(int group) const { return groups_[static_cast<size_t>(group)].size; }

  // Posts the operations to a group, together. Collectives are numbered (sends and receives are
  // not: not all ranks take part in them). The descriptors are copied; what they point to is
  // borrowed until the work is done. Never blocks. [compute thread]
  Ticket submit(std::vector<orr_coll> ops, int group = 0);
  // Work of several operations, of which later ones depend on what earlier ones have brought: runs
  // on the lane, after all that was submitted before, and calls `post` as often as it likes; that
  // returns when the operations are done. What it throws is an error of the lane. Never blocks.
  // [compute thread]
  using Post = std::function<void(const std::vector<orr_coll>& ops)>;
  Ticket submit(std::function<void(const Post& post)> work, int group = 0);
  // Whether the backend enqueues operations on memory of a device on a stream of that device.
  bool on_streams() const;
  // What a backend enqueues, and what else goes on the same stream: `before` and `after` it and,
  // where the operation is composed, the folds.
  struct OnStream {
    std::function<void()> before, after;
    const Composition* composition = nullptr;  // null: the operation is the backend's own
    orr_buffer scratch{};
    std::function<void(const SpotFold& fold)> fold = nullptr;
  };
  // For such backends: posts an operation whose `stream` is set, all on the lane. Done when it is
  // enqueued; never blocks. REQUIRES: the composition outlives the work. [compute thread]
  Ticket enqueue(const orr_coll& op, int group, OnStream how);
  Ticket finish();  // done when all that was enqueued is over [compute thread]
  // The group's own way to post, for one other thread that drives it alone, not the lane. [main
  // thread]
  Post direct(int group);
  // Returns when the work is done; throws Error, the same again and again, once any work has
  // failed. [compute thread]
  void wait(Ticket ticket) { lane_.wait(ticket); }
  bool done(Ticket ticket) const { return lane_.done(ticket); }  // or failed [any thread]
  void drain() { wait(lane_.last()); }  // waits for everything submitted [compute thread]
  void run(std::vector<orr_coll> ops) { wait(submit(std::move(ops))); }

  // Memory that the ranks of a group use in place, else ordinary memory. Collective over the group,
  // after all submitted work. Freed by `free`, or with this object. [main thread]
  orr_memory* allocate(uint64_t bytes, int group = 0);
  // The same of a device's memory. REQUIRES: gives_device_memory().
  bool gives_device_memory() const {
    return on_streams() && (caps_.flags & ORR_COMM_DEVICE_MEMORY);
  }
  orr_memory* allocate_on_device(uint64_t bytes, int group);
  void free(orr_memory* memory);

  uint64_t bytes_sent() const;  // [any thread]
  // Operations so far that the plugin does not have and that were composed of its messages: names
  // with commas. [any thread]
  std::string composed() const;
  void abort(
      const std::string& reason);  // pending and later work ends, here and on peers [any thread]

 private:
  struct Group {
    orr_comm* comm = nullptr;  // null in a world of one
    int rank = 0, size = 1;
    uint64_t sequence = 0;  // of the lane
  };
  void execute(std::vector<orr_coll> ops, Group& group);
  void number(orr_coll& op, Group& group) const;
  void post_on_stream(const orr_coll* ops, size_t n, Group& group);
  void compose_on_stream(const orr_coll& c, const OnStream& how, Group& group);
  void await_streams();
  void post_now(const orr_coll* ops, int32_t n, Group& group);
  void compose(const orr_coll& c, Group& group);
  void count_composed(const orr_coll& c, const Group& group, uint64_t sent_before);
  std::chrono::nanoseconds time_on_link(const std::vector<orr_coll>& ops, const Group& group) const;
  std::string elsewhere(const orr_coll& here);

  World world_;
  uint64_t link_speed_;
  std::unique_ptr<Store> store_;
  const orr_comm_api* api_ = nullptr;  // null in a world of one
  std::deque<Group> groups_;           // stay where they are
  orr_comm_caps caps_{};
  struct Memory {
    orr_memory* memory;
    orr_comm* comm;  // that gave it; null: the host
  };
  std::vector<Memory> memories_;
  std::vector<std::pair<orr_comm*, orr_work*>> on_streams_;  // of the lane
  std::atomic<uint64_t> composed_{0};                        // bit n: operation n
  std::atomic<uint64_t> beyond_definition_{0};               // bytes of their messages

  Lane lane_;  // without a thread in a world of one
};

}  // namespace orrery
