// SPDX-License-Identifier: Apache-2.0
//
// The key-value table that the ranks of a job share while they find each other, and the launcher's
// word on who has ended.
#pragma once

#include <orrery/comm.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/work.h"
#include "launch/environment.h"

namespace orrery {

class Store {
 public:
  // A table in memory for a world of one; our launcher's store if that has started this process;
  // else the one that rank 0 serves (meeting.h). Collective then. On several hosts that are told no
  // place to meet, or have no token, there is none: its `put` and `get` throw.
  static std::unique_ptr<Store> open(const World& world);
  virtual ~Store() = default;

  virtual void put(const std::string& key, const std::string& value) = 0;
  // Waits until the key is there. Throws Error: ORR_DEADLINE, or ORR_RETRY when a rank has died.
  virtual std::string get(const std::string& key, int64_t deadline_ns) = 0;
  // 0, or the rank has been seen to end: how many had when it did. [any thread]
  virtual int dead(int rank) const = 0;
  // What the rank is at, as itself says; nothing if it does not answer
  // within half a second: it is stopped, has not come, or nobody can ask it. [any thread]
  virtual std::optional<WorkAnswer> ask(int rank) = 0;
  // Tells all ranks why they are to end; the first one counts. [any thread]
  virtual void blame(const Error&) {}
  virtual std::optional<Error> blamed() { return std::nullopt; }
  // Tells the server the sentence that this rank ends with; our launcher names the first one.
  virtual void report(const std::string& error) = 0;
  virtual const std::string& job() const = 0;

  // Whether `rank` lives, and may be waited for longer than `waited_ns`: what the table of a comm
  // plugin calls at_work (comm.h). Says on stderr, now and then, what it is that this rank waits
  // for. [any thread]
  int at_work(int rank, int64_t waited_ns, std::string& what);

  // What a comm plugin gets. Borrows this store.
  orr_comm_boot boot(const World& world);

 private:
  std::string get_patiently(const std::string& key, int64_t deadline_ns);

  World world_;                         // of boot
  std::atomic<int64_t> said_after_{0};  // the wait at which at_work has last said so
};

// What asks another store, but for what a class of its own does otherwise.
class ForwardingStore : public Store {
 public:
  explicit ForwardingStore(std::unique_ptr<Store> store) : store_(std::move(store)) {}
  void put(const std::string& key, const std::string& value) override { store_->put(key, value); }
  std::string get(const std::string& key, int64_t deadline_ns) override {
    return store_->get(key, deadline_ns);
  }
  int dead(int rank) const override { return store_->dead(rank); }
  std::optional<WorkAnswer> ask(int rank) override { return store_->ask(rank); }
  void blame(const Error& why) override { store_->blame(why); }
  std::optional<Error> blamed() override { return store_->blamed(); }
  void report(const std::string& error) override { store_->report(error); }
  const std::string& job() const override { return store_->job(); }

 protected:
  std::unique_ptr<Store> store_;
};

}  // namespace orrery
