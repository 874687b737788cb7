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
  // The launcher's store if one has started this process; a table in memory for a world of one. A
  // larger world without our launcher is an Error that says how to start it.
  static std::unique_ptr<Store> open(const World& world);
  virtual ~Store() = default;

  virtual void put(const std::string& key, const std::string& value) = 0;
  // Waits until the key is there. Throws Error: ORR_DEADLINE, or ORR_RETRY when a rank has died.
  virtual std::string get(const std::string& key, int64_t deadline_ns) = 0;
  // Whether the launcher has seen the rank end. [any thread]
  virtual bool dead(int rank) const = 0;
  // Tells the launcher the sentence that this rank ends with; it names the first one.
  virtual void report(const std::string& error) = 0;
  virtual const std::string& job() const = 0;

  // What a comm plugin gets. Borrows this store.
  orr_comm_boot boot(const World& world);
};

}  // namespace orrery
