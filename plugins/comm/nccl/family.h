// SPDX-License-Identifier: Apache-2.0
//
// What all communicators of one world share: the GPU, one end (after a lost peer none can be
// trusted), and what ranks tell each other past NCCL, through the job's store:
//
//   nccl/W/id          the identifier of the world's communicator, from rank 0; W counts worlds
//   nccl/W/device/R    the GPU of rank R
//   nccl/W/awaited/R   what rank R waits for, if it has waited for some time
//
// Every key is put while the world forms, so that no later look at one has to wait.
#pragma once

#include <orrery/comm.h>

#include <string>
#include <vector>

#include "../shared/ending.h"
#include "../shared/operation.h"
#include "device.h"

namespace nccl {

// What a rank waits for. Travels between processes.
struct Awaited {
  uint64_t comm;  // in which communicator; 0: it does not wait
  int32_t message, peer, tag;
  shared::Card card;
};

class Family : public shared::Ending {
 public:
  // Opens the GPU and sees that no two ranks share one, unless they may. Collective. Throws
  // orr::Error.
  explicit Family(const orr_comm_boot& boot);

  const orr_comm_boot& boot() const { return boot_; }
  int rank() const { return boot_.rank; }
  int size() const { return boot_.world_size; }
  bool has_own_cpu() const { return has_own_cpu_; }
  Device& device() { return device_; }
  Staging& staging() { return staging_; }
  ncclUniqueId meet();

  // Throws when the world has ended, here or on a peer.
  void listen();

  void say(const Awaited& mine) const;
  std::vector<Awaited> all_awaited() const;

 private:
  void tell_peers(int32_t code, const std::string& text) override;
  std::string key(const char* name, int rank = -1) const;
  void put(const std::string& key, const void* value, uint64_t bytes) const;
  std::string get(const std::string& key, const std::string& culprit) const;
  std::string get_first(const char* name, int rank) const;
  void refuse_shared_devices() const;

  orr_comm_boot boot_;
  int world_;  // the how manieth of this process
  bool has_own_cpu_;
  Device device_;
  Staging staging_;
};

}  // namespace nccl
