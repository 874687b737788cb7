// SPDX-License-Identifier: Apache-2.0
//
// What all communicators of one world share: the library itself, the end of the world, and the
// control channel, by which ranks tell each other that it has ended and ask whether they are still
// there. Any thread may call.
#pragma once

#include <orrery/comm.h>

#include <mutex>
#include <string>
#include <vector>

#include "../shared/ending.h"
#include "library.h"

namespace mpi {

class World : public shared::Ending {
 public:
  // Initialises MPI and checks that its world is the one of `boot`. Throws orr::Error.
  explicit World(const orr_comm_boot& boot);
  // Ends MPI together with the peers, unless the process is failing.
  ~World() override;

  const orr_comm_boot& boot() const { return boot_; }
  bool has_own_cpu() const { return has_own_cpu_; }

  // Held around every call into MPI. No call but MPI_Comm_split waits for a peer meanwhile, so that
  // several threads may each drive a communicator.
  std::mutex& lock() { return lock_; }

  // Takes the control messages that have come.
  void serve();
  // Asks all ranks whether they wait, too.
  void ask_all();
  // The ranks that have not said so since then.
  std::vector<int> silent_since(int64_t time_ns);

 private:
  void check_world() const;
  void send_signal(int rank, int kind);
  void tell_peers(int32_t code, const std::string& reason) override;

  orr_comm_boot boot_;
  bool has_own_cpu_ = false;
  std::mutex lock_;
  MPI_Comm control_ = MPI_COMM_NULL;
  std::vector<int64_t> heard_at_;  // when each rank last said that it waits
};

// Throws orr::Error with the library's text if `code` is no success.
void check_mpi(int code, const char* what);

}  // namespace mpi
