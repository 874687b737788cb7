// SPDX-License-Identifier: Apache-2.0
//
// The key-value table that the ranks of a job share, and the one place where a rank learns which
// other has died, does not answer or is at work, and why all are to end.
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
  // Waits until the key is there. Throws Error: ORR_DEADLINE, ORR_RETRY when a rank has died, or
  // why all are to end.
  virtual std::string get(const std::string& key, int64_t deadline_ns) = 0;
  // Whether there is another rank to ask, or to tell anything.
  virtual bool is_shared() const { return true; }
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
  // As `get` though all are to end: of what ranks say about that.
  virtual std::string get_at_end(const std::string& key, int64_t deadline_ns) {
    return get(key, deadline_ns);
  }

  // Whether `rank` lives, and may be waited for longer than `waited_ns`: what the table of a comm
  // plugin calls at_work (comm.h), 0 to 3. Says on stderr, now and then, what it is that this rank
  // waits for. [any thread]
  int at_work(int rank, int64_t waited_ns, std::string& what);

  // Who is to blame that the world has not formed for so long: a rank that is dead or does not
  // answer, or that has taken longer than it may while none is at work of its own. [any thread]
  struct Verdict {
    std::optional<Error> blame;
    bool busy = false;  // a rank is: the others are to wait
  };
  Verdict judge(const World& world, int64_t waited_ns);

  // What a comm plugin gets. Borrows this store.
  orr_comm_boot boot(const World& world);

 private:
  std::string get_patiently(const std::string& key, int64_t deadline_ns);

  World world_;                         // of boot
  std::atomic<int64_t> said_after_{0};  // the wait at which at_work has last said so
};

// What a rank is at while the world forms, and for how many deadlines: libraries take their time.
constexpr const char* forming_work = "forming the world";
constexpr int forming_deadlines = 3;

}  // namespace orrery
