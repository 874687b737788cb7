// SPDX-License-Identifier: Apache-2.0
//
// The few collectives that the core itself posts, in places that all ranks reach.
#include "comm/collectives.h"

#include "run/runtime.h"

namespace orrery {
namespace {

HostTensor run_collective(Collective kind, const HostTensor& x, const std::string& op, int root,
                          const std::string& line) {
  CollectiveCall call;
  call.kind = kind, call.tensors = {x};
  call.op = op, call.root = root, call.line = line;
  call.agreed = true;
  return post(Runtime::get().comm(), std::move(call)).wait().tensors.front();
}

}  // namespace

WorldInfo world_info() {
  if (runtime_options().plan_only)
    return {0, runtime_options().plan_ranks, 0, runtime_options().plan_ranks};
  const World& w = Runtime::get().world();
  return {w.rank, w.size, w.local_rank, w.local_size};
}

HostTensor world_allreduce(const HostTensor& x, const std::string& op, const std::string& line) {
  return run_collective(Collective::allreduce, x, op, 0, line);
}

HostTensor world_broadcast(const HostTensor& x, int root, const std::string& line) {
  return run_collective(Collective::broadcast, x, "sum", root, line);
}

HostTensor world_allgather(const HostTensor& x, const std::string& line) {
  return run_collective(Collective::allgather, x, "sum", 0, line);
}

}  // namespace orrery
