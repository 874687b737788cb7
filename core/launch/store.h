// SPDX-License-Identifier: Apache-2.0
//
// The table of keys and values that the ranks of a job share. It is also where a rank learns which
// rank has died, does not answer or is busy, and for which error all ranks are to end.
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
  // Opens the store: a table in memory for a world of one; our launcher's store if that has started
  // this process; else the store that rank 0 serves (meeting.h), which is collective, at a place
  // that a boot plugin, the launcher's variables or the name of the job tell. If ranks are on
  // several hosts and have no address to meet at or no token, they share none: `put` and `get`
  // throw.
  static std::unique_ptr<Store> open(const World& world);
  virtual ~Store() = default;

  virtual void put(const std::string& key, const std::string& value) = 0;
  // Waits until the key has a value. Throws Error: ORR_DEADLINE, ORR_RETRY if a rank has died, or
  // the error for which all ranks are to end (`blame`).
  virtual std::string get(const std::string& key, int64_t deadline_ns) = 0;
  // Whether ranks share this store, so that they can ask and tell each other.
  virtual bool is_shared() const { return true; }
  // 0 if the rank is not known to have ended; else its number in the order in which ranks ended,
  // from 1. [any thread]
  virtual int dead(int rank) const = 0;
  // Asks the rank what it is doing. Nothing if it does not answer within half a second: it is
  // stopped, has not come, or cannot be asked. [any thread]
  virtual std::optional<WorkAnswer> ask(int rank) = 0;
  // Tells all ranks the error for which they are to end; only the first call counts. [any thread]
  virtual void blame(const Error&) {}
  virtual std::optional<Error> blamed() { return std::nullopt; }
  // Tells the server the error that this rank ends with; our launcher prints the first one.
  virtual void report(const std::string& error) = 0;
  virtual const std::string& job() const = 0;
  // The same as `get`, but does not throw the error of `blame`: for keys in which ranks explain it.
  virtual std::string get_at_end(const std::string& key, int64_t deadline_ns) {
    return get(key, deadline_ns);
  }

  // Whether `rank` lives, and may be waited for longer than `waited_ns`: the answers 0 to 3 of
  // at_work in comm.h. `what` gets what the rank is doing. From time to time it prints on stderr
  // what this rank waits for. [any thread]
  int at_work(int rank, int64_t waited_ns, std::string& what);

  // The error for a world that has not formed for so long. It names a rank that is dead or does not
  // answer, or one that takes longer than it may; none as long as a rank is busy with work of its
  // own. [any thread]
  struct Verdict {
    std::optional<Error> blame;
    bool busy = false;  // a rank is busy: the others must wait
  };
  Verdict judge(const World& world, int64_t waited_ns);

  // The functions that a comm plugin gets. Borrows this store.
  orr_comm_boot boot(const World& world);

 private:
  std::string get_patiently(const std::string& key, int64_t deadline_ns);

  World world_;                         // that of boot()
  std::atomic<int64_t> said_after_{0};  // how long it had waited when at_work last printed
};

// What a rank answers that it is doing while the world forms, and for how many deadlines it may do
// so: libraries may need more than one.
constexpr const char* forming_work = "forming the world";
constexpr int forming_deadlines = 3;

}  // namespace orrery
