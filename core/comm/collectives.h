// SPDX-License-Identifier: Apache-2.0
//
// Horovod's collectives on host tensors: one table of operations and one way to post them. The
// ranks of a group post their collectives in one order; each is agreed on (agreement.h), then
// carried out, on the lane of the world's communicator, so that nothing that the lane carries can
// overtake it on one rank only.
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
  std::vector<HostTensor>
      tensors;             // one operation on all of them; read until the collective is done
  std::string op = "sum";  // sum, mean, min, max, prod
  int root = 0;
  std::vector<int64_t> splits;  // alltoall: rows of dim 1 for each rank; empty: equal parts
  std::string name, line;       // the user's name for it; Lua file:line
  int group = 0;
  bool agreed = false;  // posted by the core, which knows that all ranks do: not asked again
};

struct CollectiveResult {
  std::vector<HostTensor> tensors;  // of the size of the call's, in its order
  std::vector<int64_t> splits;      // alltoall: rows that came from each rank
  int last = 0;                     // join: the rank that joined last
};

// A collective under way. Its memory is its own: it may be dropped before it is done. [main thread]
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

// Never blocks. Throws Error if this rank's call cannot be right whatever the others post. [main
// thread]
PostedCollective post(WorldComm& comm, CollectiveCall call);

// Messages between two ranks of a group, in the order of their posting; both block. [main thread]
struct Route {
  int peer = 0, tag = 0, group = 0;
  std::string line;
};
void send_tensor(WorldComm& comm, const HostTensor& x, const Route& to);
HostTensor recv_tensor(WorldComm& comm, const Type& type, const Route& from);

}  // namespace orrery
