// SPDX-License-Identifier: Apache-2.0
//
// Runs a rank plan. Kernels are prepared and buffers bound when the executor is made; a run then
// walks the schedule. [main thread; with an arena of its own, any one thread at a time]
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lower/rank_plan.h"
#include "run/bound.h"
#include "run/check_finite.h"
#include "run/device_run.h"
#include "run/profile.h"
#include "run/runtime.h"
#include "run/spans.h"
#include "run/verification.h"

namespace orrery {

class Executor {
 public:
  // REQUIRES: the plan's states are materialized. Collective if the plan has buckets.
  Executor(RankPlan plan, Runtime& runtime) : Executor(std::move(plan), runtime, runtime.arena()) {}
  Executor(RankPlan plan, Runtime& runtime, SharedArena& arena);
  ~Executor();
  Executor(const Executor&) = delete;

  const RankPlan& plan() const { return plan_; }
  // The host address of an input, which the caller fills before `run`, or of an output, which it
  // reads afterwards. On a device this is memory that the device copies from and to.
  std::byte* address(ValueId v) const;
  // A 0-d output as a number.
  double scalar(ValueId v) const;
  // The step that errors of the next runs name.
  void set_step(int64_t step) {
    if (check_) check_->set_step(step);
  }
  // Until it is called again, every run tells this of its launches; null: nothing.
  void verify(Verification* by) { verification_ = by; }
  void run();
  // The same; notes what each lane does when.
  void run(Spans& spans);

 private:
  struct Prepared {
    const orr_kernel_api* api = nullptr;
    orr_kernel* kernel = nullptr;
    std::vector<Bound> bound;     // inputs, outputs, the workspace if there is one
    std::vector<orr_buffer> now;  // the same for the current step's slots
    size_t n_in = 0, n_out = 0;
    bool moves = false;           // `now` differs from step to step: some storage has slots
    Profile::Row* row = nullptr;  // null: nothing is timed
  };
  Bound bound(const Place& at) const;
  void prepare(const Launch& launch);
  void prepare(const Exchange& exchange);
  std::shared_ptr<SpillFile> file_of(const Place& at) const;
  void launch(const Step& step);
  void post(const Step& step);
  void wait(const Step& step);
  void carry_out(const Step& step);
  void noted(size_t i);
  void walk();
  void run_on_device();
  void step_on_device(const Step& step);

  RankPlan plan_;
  Runtime& runtime_;
  SharedArena& arena_;
  std::shared_ptr<const orr_memory> comm_memory_;
  std::shared_ptr<const orr_memory> host_stash_;  // regions host and disk
  std::shared_ptr<SpillFile> disk_stash_;
  std::vector<Prepared> prepared_;
  std::vector<Posted> posted_;
  bool profiled_ = false, ran_ = false;
  Spans* spans_ = nullptr;              // null: nothing is noted
  orr_stream* stream_ = nullptr;        // null on the host
  std::unique_ptr<DeviceRun> device_;   // likewise
  std::unique_ptr<CheckFinite> check_;  // null: nothing is checked
  Verification* verification_ = nullptr;
};

}  // namespace orrery
