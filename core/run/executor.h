// SPDX-License-Identifier: Apache-2.0
//
// Runs a rank plan. Everything is decided when it is made: kernels prepared, buffers bound; a step
// walks the schedule. [main thread]
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "run/profile.h"
#include "run/runtime.h"

namespace orrery {

class Executor {
 public:
  // REQUIRES: the plan's states are materialized. Collective if the plan has buckets.
  Executor(RankPlan plan, Runtime& runtime);
  ~Executor();
  Executor(const Executor&) = delete;

  const RankPlan& plan() const { return plan_; }
  // The host address of an input, to be filled before `run`, or of an output, to be read after.
  std::byte* address(ValueId v) const;
  // A fetched 0-d value as a number.
  double scalar(ValueId v) const;
  void run();

 private:
  struct Prepared {
    const orr_kernel_api* api = nullptr;
    orr_kernel* kernel = nullptr;
    std::vector<orr_buffer> in, out;
    orr_buffer workspace{};
    bool has_workspace = false;
    Profile::Row* row = nullptr;  // unless nobody asked
  };
  orr_buffer buffer(const Place& at) const;
  void prepare(const Launch& launch);
  void launch(size_t index);
  void walk();
  orr_coll collective(const Bucket& bucket) const;

  RankPlan plan_;
  Runtime& runtime_;
  const orr_memory* comm_memory_ = nullptr;
  std::vector<Prepared> prepared_;
  std::vector<orr_coll> collectives_;
  std::vector<WorldComm::Ticket> tickets_;
  bool profiled_ = false, ran_ = false;
};

}  // namespace orrery
