// SPDX-License-Identifier: Apache-2.0
//
// Finds the stages of ops, values and states (partition/stage_ranks.h has an example). First come
// the ops of forward and backward, whose stages are given, and the states that they read. Then
// follows the update, backwards: a state's new value is needed where the state is, and so is what
// it is computed from. A stage that needs another state for it holds that state too from then on,
// and must update it. So this is repeated until no state gets another stage.
#include "partition/stage_ranks.h"

#include <algorithm>

#include "partition/localize.h"
#include "program/state.h"

namespace orrery {

Ranks holders_before(const State& s, const Mesh& mesh) {
  Ranks found(static_cast<size_t>(mesh.size_of(mesh.schedule.axis)));
  for (int rank = 0; s.bound && rank < mesh.world; ++rank)
    if (s.parts.empty() || s.parts[static_cast<size_t>(rank)].type(s.type).elements() > 0)
      found.set(static_cast<size_t>(mesh.coordinate(mesh.schedule.axis, rank)));
  return found;
}

StageRanks::StageRanks(const Program& p, const Mesh& mesh)
    : from_(p),
      mesh_(mesh),
      everyone_(static_cast<size_t>(mesh.size_of(mesh.schedule.axis))),
      nobody_(everyone_),
      // In a step all ops count, also those whose results nothing reads. So every state that an op
      // of the model reads gets a stage, and an evaluation, which may need that op, finds it there.
      live_(p.updates().empty() ? live_ops(p) : std::vector<bool>(p.ops().size(), true)) {
  everyone_.set();
  run_at_.assign(p.ops().size(), nobody_);
  needed_.assign(p.values().size(), nobody_);
  readers_.resize(p.values().size());
  sent_.assign(p.values().size(), false);
  for (size_t v = 0; v < p.values().size(); ++v)
    if (p.values()[v].state) holders_[static_cast<ValueId>(v)] = nobody_;
  place_batch_ops();
  place_states();
  place_all_of_update();
  find_readers();
  for (size_t i = 0; i < p.ops().size(); ++i)
    for_everyone_.push_back(is_late(i) && run_at_[i] == everyone_ && !partial_input(p.ops()[i]) &&
                            all_scalars(p.ops()[i]));
}

void StageRanks::place_all_of_update() {
  for (auto& [name, v] : from_.outputs())
    if (!scalar(v)) need(v, everyone_);
  place_update_until_stable();
  for (auto& [state, next] : from_.updates())
    if (holders_[state].none()) holders_[state] = only(0);  // nothing reads it
  for (size_t before = SIZE_MAX; before != count_holders();) {
    place_update_until_stable();
    before = count_holders();
    place_scalars();  // may give a state another stage
  }
}

bool StageRanks::all_scalars(const Op& op) const {
  return std::all_of(op.out.begin(), op.out.end(), [&](ValueId v) { return scalar(v); });
}

Ranks StageRanks::only(size_t stage) const {
  Ranks one = nobody_;
  one.set(stage);
  return one;
}

// Ops that do not wait for all microbatches run on the stage of their chunk. An op that completes
// or reads a sum over the batch runs where the sum is made.
void StageRanks::place_batch_ops() {
  late_.resize(from_.ops().size());
  for (size_t i = 0; i < from_.ops().size(); ++i) {
    const Op& op = from_.ops()[i];
    late_[i] = op.phase == Phase::update || op.kind == "total" || op.kind == "batch_mean";
    for (ValueId v : op.in) {
      OpId maker = value(v).producer;
      late_[i] = late_[i] || value(v).batch() == Batch::partial ||
                 (maker != kNone && late_[static_cast<size_t>(maker)]);
    }
    if (!live_[i]) continue;
    if (late_[i]) {
      if (const ValueId* sum = partial_input(op)) run_at_[i] = available(*sum);
      continue;
    }
    run_at_[i] = only(stage_of(op));
    for (ValueId v : op.in)
      if (value(v).state) holders_[v].set(stage_of(op));
  }
}

// States that forward and backward do not read get their stages from elsewhere:
// - a parameter is where its compute copy is;
// - in a periodic program, a state of the step is where the step has it, and what a strategy keeps
//   for a parameter is where that parameter is;
// - a state that a program compiled before has placed is there as well, and is updated there.
void StageRanks::place_states() {
  std::map<const State*, Ranks> copies;
  for (auto& [v, ranks] : holders_)
    if (const State* param = value(v).state->copy_of) copies[param] = ranks;
  for (auto& [v, ranks] : holders_) {
    const State& s = *value(v).state;
    if (auto copy = copies.find(&s); copy != copies.end()) ranks |= copy->second;
    for (const std::string& name : {value(v).name, s.beside})
      if (auto at = mesh_.schedule.holders.find(name);
          at != mesh_.schedule.holders.end() && ranks.none())
        for (int rank : at->second) ranks.set(static_cast<size_t>(rank));
    // A parameter that is one number is updated on every stage, as ops on scalars are. A frozen one
    // may be trained later, in another program: so every stage has it from the start.
    if (s.frozen && scalar(v) && !from_.updates().empty()) ranks = everyone_;
    if (s.bound) ranks |= holders_before(s, mesh_);
  }
}

const ValueId* StageRanks::partial_input(const Op& op) const {
  for (const ValueId& v : op.in)
    if (value(v).batch() == Batch::partial) return &v;
  return nullptr;
}

// The stages that have v: those that run its op, or hold it if it is a state; all for an input.
Ranks StageRanks::available(ValueId v) const {
  OpId maker = value(v).producer;
  if (maker != kNone) return run_at_[static_cast<size_t>(maker)];
  if (!value(v).state) return everyone_;
  auto holder = holders_.find(v);
  return holder == holders_.end() ? nobody_ : holder->second;
}

void StageRanks::need(ValueId v, const Ranks& stages) {
  needed_[static_cast<size_t>(v)] |= stages;
  if (value(v).state) holders_[v] |= stages;
}

// Repeats place_update until no state gets another stage.
void StageRanks::place_update_until_stable() {
  for (size_t before = SIZE_MAX; before != count_holders();) {
    before = count_holders();
    place_update();
  }
}

// How many stages hold a state, added over all states.
size_t StageRanks::count_holders() const {
  size_t n = 0;
  for (auto& [v, ranks] : holders_) n += ranks.count();
  return n;
}

// Places the ops on tensors of the update, backwards from the states' new values: each runs on all
// stages that need its result.
void StageRanks::place_update() {
  for (auto& [state, next] : from_.updates()) need(next, holders_[state]);
  for (size_t i = from_.ops().size(); i-- > 0;) {
    const Op& op = from_.ops()[i];
    if (!is_late(i) || partial_input(op) || all_scalars(op)) continue;
    for (ValueId v : op.out) run_at_[i] |= needed_[static_cast<size_t>(v)];
    for (ValueId v : op.in)
      if (!scalar(v)) need(v, run_at_[i]);
  }
}

// Places the ops of the update that make scalars: on one stage that has their tensor, or on all if
// they read scalars only.
void StageRanks::place_scalars() {
  for (auto& [name, v] : from_.outputs()) need(v, everyone_);
  for (size_t i = 0; i < from_.ops().size(); ++i) {
    const Op& op = from_.ops()[i];
    if (!live_[i] || !is_late(i) || partial_input(op) || !all_scalars(op)) continue;
    const ValueId* tensor = nullptr;
    for (const ValueId& v : op.in)
      if (!scalar(v)) tensor = &v;
    run_at_[i] = everyone_;
    if (!tensor) continue;
    Ranks there = available(*tensor);
    if (there.none()) {  // no state is made of the tensor, so place_update has not placed it
      there = only(where_computable(*tensor).find_first());
      need_computed(*tensor, there);
    }
    run_at_[i] = only(there.find_first());
  }
}

// The stages that have all tensors from which v is computed. If none has: those that have the first
// of them, and as many of the next ones as one stage can have.
Ranks StageRanks::where_computable(ValueId v) const {
  Ranks there = available(v);
  if (there.any()) return there;
  there = everyone_;
  const OpId maker = value(v).producer;
  if (maker == kNone) return there;
  for (ValueId in : from_.ops()[static_cast<size_t>(maker)].in)
    if (const Ranks both = scalar(in) ? nobody_ : there & where_computable(in); both.any())
      there = both;
  return there;
}

// Has v, and the tensors of the update from which it is computed, computed on these stages as well.
// Scalars are sent instead.
void StageRanks::need_computed(ValueId v, const Ranks& stages) {
  if (scalar(v)) return;
  need(v, stages);
  OpId maker = value(v).producer;
  if (maker == kNone || !is_late(static_cast<size_t>(maker)) ||
      partial_input(from_.ops()[static_cast<size_t>(maker)]))
    return;
  run_at_[static_cast<size_t>(maker)] |= stages;
  for (ValueId in : from_.ops()[static_cast<size_t>(maker)].in) need_computed(in, stages);
}

// Now that all ops are placed: who reads each value where, and which values must be sent.
void StageRanks::find_readers() {
  for (size_t i = 0; i < from_.ops().size(); ++i)
    for (ValueId v : from_.ops()[i].in) {
      needed_[static_cast<size_t>(v)] |= run_at_[i];
      if (value(v).state) holders_[v] |= run_at_[i];
      readers_[static_cast<size_t>(v)].push_back(i);
    }
  for (size_t i = 0; i < from_.ops().size(); ++i)
    for (ValueId v : from_.ops()[i].out)
      sent_[static_cast<size_t>(v)] = !needed(v).is_subset_of(run_at_[i]);
}

}  // namespace orrery
