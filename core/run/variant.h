// SPDX-License-Identifier: Apache-2.0
//
// One compiled program over the run's states, ready to run. Training, evaluation and each shape of
// a batch have a variant of their own.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "edit/blueprint.h"
#include "program/state.h"
#include "run/executor.h"

namespace orrery {

class Variant {
 public:
  // Collective if the plan communicates.
  Variant(const Blueprint& blueprint, int rank, Runtime& runtime);
  // With an arena of its own it may run on another thread beside other variants. REQUIRES: it does
  // not communicate.
  Variant(const Blueprint& blueprint, int rank, Runtime& runtime, SharedArena& arena);

  void set_scalars(const std::map<std::string, double>& scalars, int64_t step);
  void set_batch(const BatchFields& batch);
  void set_inputs(const std::vector<HostTensor>& inputs);
  // Makes new compute copies of parameters that something else has changed, such as the script.
  // Called before `run`; collective if there are any.
  void make_copies();
  void run(Spans* spans = nullptr);  // spans: notes there what each lane does when
  // Runs twice from the same states, each time after `set`, which sets scalars and batch. Throws
  // Error(kMiscomputed) if the computations differ on any of so many ranks. Collective.
  void run_twice(const std::function<void()>& set, const std::string& line, int64_t step,
                 int ranks);
  std::map<std::string, double> fetch_scalars() const;
  // The outputs in their order; without scalars if `with_scalars` is false.
  std::vector<std::pair<std::string, HostTensor>> fetch_tensors(bool with_scalars) const;
  const RankPlan& plan() const { return executor_.plan(); }

 private:
  void set_rows(int64_t* to);
  std::vector<std::shared_ptr<State>> local_states() const;
  void load_field(const BatchField& field, ValueId v);
  void load_whole(const BatchField& field, ValueId v);
  template <class T>
  void load_each(ValueId v, const std::function<T(int64_t sample)>& of);
  Executor executor_;
  std::vector<std::shared_ptr<State>> updated_, copies_;
};

// All states that a program reads or writes.
std::vector<std::shared_ptr<State>> states_of(const Program& p);

// Sets the answer of tracing_training() and returns what it was.
bool trace_as(bool training);
// Sets the answer of tracing_training() for its lifetime.
class TraceScope {
 public:
  explicit TraceScope(bool training);
  ~TraceScope();
};

}  // namespace orrery
