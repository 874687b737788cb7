// SPDX-License-Identifier: Apache-2.0
//
// The world's communicator, its groups, and the lanes that drive them: threads that run operations
// in the order of their submission, while compute goes on. Groups share the world's lane, or have
// one of their own if the backend is ORR_COMM_CONCURRENT. A world of one rank needs neither plugin
// nor thread: its operations are copies.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/lane.h"
#include "comm/exchange_log.h"
#include "launch/environment.h"
#include "launch/store.h"

namespace orrery {

struct Composition;  // comm/composition.h
struct SpotFold;

class WorldComm {
 public:
  struct Ticket {
    size_t lane = 0;
    Lane::Ticket number = 0;
  };

  // Forms the world with the plugin `backend`; collective. Throws Error. [main thread]
  // `link_speed` simulates a slower link, in bytes a second: every operation takes at least as long
  // as over such a link, which all lanes share; 0: none is simulated. `store`: the job's store, if
  // it is open already. `begin_thread` is called first by the threads of groups.
  WorldComm(const World& world, const std::string& backend, uint64_t link_speed = 0,
            std::unique_ptr<Store> store = nullptr, std::function<void()> begin_thread = {});
  // Finishes the submitted work. REQUIRES: all buffers of that work still exist. [main thread]
  ~WorldComm();
  WorldComm(const WorldComm&) = delete;

  const World& world() const { return world_; }
  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  const orr_comm_caps& caps() const { return caps_; }
  Store& store() { return *store_; }

  // Makes a group of the ranks that give equal colors, in the order of their keys, and returns its
  // number for submit. A rank that gives -1 is in no group, and must not submit to it. Group 0 is
  // the world. Collective, after all submitted work. `name` says which ranks these are, in the log
  // of exchanges. [main thread]
  int split(int color, int key, bool own_lane = false, const std::string& name = "group");
  int rank(int group) const { return groups_[static_cast<size_t>(group)].rank; }  // -1: in none
  size_t lane(int group) const { return groups_[static_cast<size_t>(group)].lane; }
  int size(int group) const { return groups_[static_cast<size_t>(group)].size; }

  // Posts the operations to a group, together. Collectives are numbered; sends and receives are
  // not, because only two ranks take part in them. The descriptors are copied; memory that they
  // point to is borrowed until the work is done. Never blocks. [compute thread]
  Ticket submit(std::vector<orr_coll> ops, int group = 0);
  // Submits work of several operations, of which later ones depend on results of earlier ones.
  // `work` runs on the group's lane, after all work that was submitted there before. It may call
  // `post` several times; each call returns when its operations are done. An exception of `work` is
  // an error of the lane. Never blocks. [compute thread]
  using Post = std::function<void(const std::vector<orr_coll>& ops)>;
  Ticket submit(std::function<void(const Post& post)> work, int group = 0);
  // Whether the backend can enqueue operations on memory of a device on a stream of that device.
  bool on_streams() const;
  // What else is enqueued on the stream of an operation: `before` and `after` it and, if the
  // operation is composed, its folds.
  struct OnStream {
    std::function<void()> before, after;
    const Composition* composition = nullptr;  // null: the backend has the operation
    orr_buffer scratch{};
    std::function<void(const SpotFold& fold)> fold = nullptr;
  };
  // Submits an operation whose `stream` is set, for backends that are on_streams(). The ticket is
  // done when the operation is enqueued; never blocks. REQUIRES: the composition outlives the work.
  // [compute thread]
  Ticket enqueue(const orr_coll& op, int group, OnStream how);
  Ticket finish();  // its ticket is done when all enqueued work is done [compute thread]
  // A function that posts to a group directly, not over the lane. One other thread may use it, if
  // nothing else uses the group. [main thread]
  Post direct(int group);
  // Returns when the work is done. Once any work has failed, every call throws the first Error,
  // when no work is in progress any more. [compute thread]
  void wait(Ticket ticket);
  bool done(Ticket ticket) const {  // also if failed [any thread]
    return lanes_[ticket.lane].done(ticket.number);
  }
  void drain();  // waits for everything submitted [compute thread]
  void run(std::vector<orr_coll> ops) { wait(submit(std::move(ops))); }

  // Memory for exchanges of a group. If the backend can, peers access it in place; else it is
  // ordinary memory. Collective over the group, after all submitted work. Freed by `free`, or with
  // this object. [main thread]
  orr_memory* allocate(uint64_t bytes, int group = 0);
  // The same for memory of the device. REQUIRES: gives_device_memory().
  bool gives_device_memory() const {
    return on_streams() && (caps_.flags & ORR_COMM_DEVICE_MEMORY);
  }
  orr_memory* allocate_on_device(uint64_t bytes, int group);
  void free(orr_memory* memory);

  uint64_t bytes_sent() const;  // [any thread]
  // The names of operations that were composed because the plugin does not have them, with commas.
  // [any thread]
  std::string composed() const;
  // What a rank that ends because ranks did not meet leaves: its last exchanges. Null if none has
  // failed, and none is in progress. [any thread]
  const ExchangeLog* failed_exchanges() const {
    return failed_ || log_.any_open() ? &log_ : nullptr;
  }
  // Ends pending and later work with an error, here and on peers. [any thread]
  void abort(const std::string& reason);

 private:
  using Clock = std::chrono::steady_clock;
  struct Group {
    orr_comm* comm = nullptr;  // null in a world of one
    std::string name = "world";
    int rank = 0, size = 1;
    size_t lane = 0;
    uint64_t sequence = 0;  // the number of its last collective; used on the lane
  };
  Ticket on_lane(int group, std::function<void()> work);
  void end_others(size_t lane, const std::string& why);
  void execute(std::vector<orr_coll> ops, Group& group);
  void number(orr_coll& op, Group& group) const;
  uint64_t note(const orr_coll& c, const Group& group) {
    return log_.begin(c, group.name.c_str(), group.rank, group.size);
  }
  void post_on_stream(const orr_coll* ops, size_t n, Group& group);
  void compose_on_stream(const orr_coll& c, const OnStream& how, Group& group);
  void await_streams();
  void post_now(const orr_coll* ops, int32_t n, Group& group);
  void compose(const orr_coll& c, Group& group);
  void count_composed(const orr_coll& c, const Group& group, uint64_t sent_before);
  Clock::time_point end_on_link(const std::vector<orr_coll>& ops, const Group& group,
                                Clock::time_point posted);
  std::string elsewhere(const orr_coll& here);

  World world_;
  uint64_t link_speed_;
  std::unique_ptr<Store> store_;
  const orr_comm_api* api_ = nullptr;  // null in a world of one
  std::deque<Group> groups_;           // a deque, so that their addresses stay valid
  orr_comm_caps caps_{};
  struct Memory {
    orr_memory* memory;
    orr_comm* comm;  // the communicator that allocated it; null: ordinary memory
  };
  std::vector<Memory> memories_;
  std::vector<std::pair<orr_comm*, orr_work*>> on_streams_;  // enqueued work; used on the lane
  ExchangeLog log_;
  std::vector<uint64_t> enqueued_;     // the numbers of that work in the log; used on the lane
  std::atomic<uint64_t> composed_{0};  // bit n: operation n was composed
  // Bytes that composed operations have sent beyond the bytes of their definition.
  std::atomic<uint64_t> beyond_definition_{0};

  std::mutex mutex_;
  Clock::time_point out_free_, in_free_;  // when the simulated link is free in each direction
  std::exception_ptr error_;              // the first of all lanes; never changes once it is set
  std::atomic<bool> failed_{false};       // error_ is set
  std::function<void()> begin_thread_;
  std::deque<Lane> lanes_;  // the first is the world's
};

}  // namespace orrery
