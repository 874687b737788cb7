// SPDX-License-Identifier: Apache-2.0
//
// Horovod's collectives on host tensors. The ranks of a group post their collectives in the same
// order. On the lane of the world's communicator they first agree on each (agreement.h) and then
// carry it out. Because the lane also carries the exchanges of plans, all ranks have the same order
// of both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/world_comm.h"
#include "program/state.h"

namespace orrery {

enum class Collective { allreduce, broadcast, allgather, reduce_scatter, alltoall, barrier, join };
const char* collective_name(Collective kind);

struct CollectiveCall {
  Collective kind = Collective::barrier;
  std::vector<HostTensor> tensors;  // all are reduced or sent; read until the collective is done
  std::string op = "sum";           // sum, mean, min, max, prod
  int root = 0;
  std::vector<int64_t> splits;  // alltoall: rows of dim 1 for each rank; empty: equal parts
  std::string name, line;       // the user's name for it; Lua file:line
  int group = 0;
  bool agreed = false;  // the core posts it on all ranks: they need not agree first
};

struct CollectiveResult {
  std::vector<HostTensor> tensors;  // one for each of the call's, in their order
  std::vector<int64_t> splits;      // alltoall: rows that came from each rank
  int last = 0;                     // join: the rank that joined last
};

// A collective that has been posted. It owns its memory, so this object may be destroyed before the
// collective is done. [main thread]
class PostedCollective {
 public:
  PostedCollective(WorldComm& comm, std::shared_ptr<const CollectiveResult> answer,
                   WorldComm::Ticket ticket)
      : comm_(comm), answer_(std::move(answer)), ticket_(ticket) {}
  const CollectiveResult& wait() const;  // throws Error once anything on the lane has failed
  bool done() const { return comm_.done(ticket_); }

 private:
  WorldComm& comm_;
  std::shared_ptr<const CollectiveResult> answer_;
  WorldComm::Ticket ticket_;
};

// Posts a collective without blocking. Throws Error if the call is wrong whatever the other ranks
// post. [main thread]
PostedCollective post(WorldComm& comm, CollectiveCall call);

// Messages between two ranks of a group, in the order of their posting; both block. [main thread]
struct Route {
  int peer = 0, tag = 0, group = 0;
  std::string line;
};
void send_tensor(WorldComm& comm, const HostTensor& x, const Route& to);
HostTensor recv_tensor(WorldComm& comm, const Type& type, const Route& from);

}  // namespace orrery
