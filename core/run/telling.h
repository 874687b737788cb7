// SPDX-License-Identifier: Apache-2.0
//
// What the observers hear of each training step of a run. [main thread]
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "run/run.h"
#include "run/spans.h"
#include "run/variant.h"
#include "run/vitals.h"

namespace orrery {

class Telling {
 public:
  // Begins a step. `by_driver`: a driver takes it, which notes neither spans nor tensors.
  void begin(int64_t step, bool by_driver);
  // Whether an observer wants the values of parameters and gradients of this step.
  bool wants_tensors() const { return wanted_ & ORR_WANTS_TENSORS; }
  // Where the step notes what its lanes do; null: nobody wants it.
  Spans* spans() { return wanted_ & ORR_WANTS_SPANS ? &spans_ : nullptr; }
  void leave_out_spans() { wanted_ &= ~ORR_WANTS_SPANS; }
  // When this rank loads its rows of the batch.
  Spans::Mark& data_mark() { return data_mark_; }

  // Tells the facts of the run and its plan, once.
  void describe(const RunSpec& spec, const Variant& step, int64_t microbatches) {
    vitals_.describe(spec, step, microbatches, Runtime::get());
  }
  // Tells the step that has ended. `variant`: its program; null: a driver has taken it. `scalars`
  // are the step's numbers, `counters` the run's after it.
  void end(int64_t step, const RunSpec& spec, const Variant* variant, const BatchFields& batch,
           const std::map<std::string, double>& scalars, StepResult& result,
           const Counters& counters);

 private:
  void tell_lanes(int64_t step, const Variant& variant);

  std::chrono::steady_clock::time_point begin_;
  int32_t wanted_ = 0;  // ORR_WANTS_ bits
  Spans spans_;
  Spans::Mark data_mark_;
  Vitals vitals_;
  double waited_ = 0;  // Counters::checkpoint_seconds at the last step
  uint64_t sent_ = 0;  // Counters::bytes_sent at the last step
};

}  // namespace orrery
