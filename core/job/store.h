// SPDX-License-Identifier: Apache-2.0
//
// The key-value table that the ranks of a job share while they find each other, and the launcher's
// word on who has ended.
#pragma once

#include <orrery/comm.h>

#include <cstdint>
#include <memory>
#include <string>

#include "job/environment.h"

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
  // Whether the rank has been seen to end. [any thread]
  virtual bool dead(int rank) const = 0;
  // Tells the server the sentence that this rank ends with; our launcher names the first one.
  virtual void report(const std::string& error) = 0;
  virtual const std::string& job() const = 0;

  // What a comm plugin gets. Borrows this store.
  orr_comm_boot boot(const World& world);
};

}  // namespace orrery
