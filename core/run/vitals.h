// SPDX-License-Identifier: Apache-2.0
//
// What a run tells its observers of itself: once, what it is and what its plan says; with each
// step, how fast it is. [main thread]
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "run/run.h"
#include "run/variant.h"

namespace orrery {

class Vitals {
 public:
  // Tells the facts of the run and of the plan of a step; does nothing after the first call.
  void describe(const RunSpec& spec, const Variant& step, int64_t microbatches, Runtime& runtime);
  // Tells the speed of a step that took so many seconds. `scalars` are the step's numbers.
  void tell(int64_t step, double seconds, const BatchFields& batch,
            const std::map<std::string, double>& scalars, Observers& to) const;

 private:
  bool described_ = false;
  double product_flops_ = 0;  // of a step's matrix products on this rank
  double best_ = 0;           // FLOP/s of the best product; 0: not measured
};

// Tells the values of these states, as far as this rank holds them, on the host and in f32. [main
// thread]
void tell_tensors(const StateList& states, int64_t step, Runtime& runtime);
// Tells the f32 gradients of parameters that the step was asked for. [main thread]
void tell_gradients(const StepResult& result, Observers& to);

}  // namespace orrery
