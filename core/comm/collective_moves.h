// SPDX-License-Identifier: Apache-2.0
//
// Carries out collectives once the ranks have agreed on them. Each posts its operations once, or
// twice if ranks must first exchange the sizes of parts. [communication thread]
#pragma once

#include <string>

#include "comm/collectives.h"

namespace orrery::moves {

// A collective that is being carried out on the lane.
struct Job {
  const CollectiveCall& call;
  CollectiveResult& answer;
  int rank, size;
  const WorldComm::Post& post;
  std::string where;

  orr_coll make(int32_t op, int32_t dtype) const;
};

void allreduce(Job& job);
void broadcast(Job& job);
void allgather(Job& job);
void reduce_scatter(Job& job);  // if rows do not divide evenly, the first ranks get one more
void alltoall(Job& job);

// The reduction of "sum" or "mean", "min", "max", "prod"; throws for any other collective.
int32_t redop(const std::string& op);

}  // namespace orrery::moves
