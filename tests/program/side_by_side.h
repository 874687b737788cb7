// SPDX-License-Identifier: Apache-2.0
//
// All ranks of a job in one process: every rank's plan, as `lower` makes it, is walked step by step
// in memory of its own; an exchange is computed by a plain model once all who take part have posted
// it. One rank alone is the oracle.
#pragma once

#include <orrery/kernel.h>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "machine.h"
#include "run/bound.h"

namespace program_test {

using Bytes = std::vector<std::byte>;

class SideBySide {
 public:
  // States begin with their initial data, zeros without.
  SideBySide(const Program& logical, const orrery::Mesh& mesh, int64_t microbatches,
             const std::vector<std::string>& kernels);
  ~SideBySide();

  // Runs a step on the whole batch's fields and the scalars ($seed and $step among them); the
  // outputs' bytes. Throws Error where ranks differ or wait for ever.
  std::map<std::string, Bytes> step(const Named& fields, const Named& scalars);
  // A state, put together from the ranks' parts; copies of the same element must be the same.
  Bytes state(const std::string& name) const;

 private:
  struct Block {
    Bytes bytes;
    orr_memory memory{};
    void allocate(uint64_t n);
  };
  struct Prepared {
    const orr_kernel_api* api = nullptr;
    orr_kernel* kernel = nullptr;
    std::vector<orrery::Bound> bound;
    size_t n_in = 0, n_out = 0;
  };
  struct Post {
    int exchange, microbatch;
    orr_buffer send, recv;
  };
  struct Rank {
    orrery::RankPlan plan;
    Block arena, comm;
    std::vector<std::unique_ptr<Block>> blocks;
    std::map<const orrery::State*, orr_buffer> states;
    std::vector<Prepared> prepared;
    size_t at = 0;                                   // in the schedule
    std::map<std::string, std::deque<Post>> posted;  // by axis, in order
    std::map<std::pair<int, int>, bool> done;        // by exchange and microbatch
  };

  void prepare(Rank& rank);
  void hold_states(Rank& rank);
  orrery::Bound bound(const Rank& rank, const orrery::Place& at) const;
  std::byte* address(const Rank& rank, ValueId v) const;
  void fill(Rank& rank, const Named& fields, const Named& scalars) const;
  bool advance(Rank& rank);
  bool exchange();
  bool exchange_on(const std::string& axis, const std::vector<size_t>& group);
  bool deliver(const std::string& axis, const std::vector<size_t>& group);
  void collect(const std::vector<size_t>& group, const std::vector<Post>& posts);
  void finish(Rank& rank, const std::string& axis, size_t index);
  std::map<std::string, Bytes> outputs() const;

  std::vector<Rank> ranks_;
  int64_t batch_;
};

}  // namespace program_test
