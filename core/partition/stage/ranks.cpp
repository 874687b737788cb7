// SPDX-License-Identifier: Apache-2.0
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
      // Of a step all ops count, also those whose results nothing reads: an evaluation may read the
      // states that they read, which need a place.
      live_(p.updates().empty() ? live_ops(p) : std::vector<bool>(p.ops().size(), true)) {
  everyone_.set();
  run_at_.assign(p.ops().size(), nobody_);
  needed_.assign(p.values().size(), nobody_);
  readers_.resize(p.values().size());
  travels_.assign(p.values().size(), false);
  for (size_t v = 0; v < p.values().size(); ++v)
    if (p.values()[v].state) holders_[static_cast<ValueId>(v)] = nobody_;
  find_early();
  find_held();
  for (auto& [name, v] : p.outputs())
    if (!scalar(v)) need(v, everyone_);
  settle_update();
  for (auto& [state, next] : from_.updates())
    if (holders_[state].none()) holders_[state] = only(0);  // nothing reads it
  for (size_t before = SIZE_MAX; before != held();) {  // placing a scalar may add holders of states
    settle_update();
    before = held();
    place_scalars();
  }
  find_readers();
  for (size_t i = 0; i < p.ops().size(); ++i)
    for_everyone_.push_back(is_late(i) && run_at_[i] == everyone_ && !partial_input(p.ops()[i]) &&
                            all_scalars(p.ops()[i]));
}

bool StageRanks::all_scalars(const Op& op) const {
  return std::all_of(op.out.begin(), op.out.end(), [&](ValueId v) { return scalar(v); });
}

Ranks StageRanks::only(size_t rank) const {
  Ranks one = nobody_;
  one.set(rank);
  return one;
}

void StageRanks::find_early() {
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
    if (late_[i]) {  // sums over the batch stay where they are made until they are complete
      if (const ValueId* sum = partial_input(op)) run_at_[i] = available(*sum);
      continue;
    }
    run_at_[i] = only(at(op));
    for (ValueId v : op.in)
      if (value(v).state) holders_[v].set(at(op));
  }
}

// Finds where states are that forward and backward do not place. A periodic program has the states
// of the step where the step has them, and a strategy's own states beside their parameters. Every
// program has states where the programs that were compiled before have them, and updates them
// there. Parameters lie where their compute copies do.
void StageRanks::find_held() {
  std::map<const State*, Ranks> copies;
  for (auto& [v, ranks] : holders_)
    if (const State* param = value(v).state->copy_of) copies[param] = ranks;
  for (auto& [v, ranks] : holders_) {
    const State& s = *value(v).state;
    if (auto copy = copies.find(&s); copy != copies.end()) ranks |= copy->second;
    for (const std::string& name : {value(v).name, s.beside})
      if (auto at = mesh_.schedule.held_at.find(name);
          at != mesh_.schedule.held_at.end() && ranks.none())
        for (int rank : at->second) ranks.set(static_cast<size_t>(rank));
    // The update of a trained number runs on every stage. A frozen one may be trained later, and so
    // every stage has it from the start.
    if (s.frozen && scalar(v) && !from_.updates().empty()) ranks = everyone_;
    if (s.bound) ranks |= holders_before(s, mesh_);
  }
}

const ValueId* StageRanks::partial_input(const Op& op) const {
  for (const ValueId& v : op.in)
    if (value(v).batch() == Batch::partial) return &v;
  return nullptr;
}

// The coordinates that have v before the update: early results, inputs, states.
Ranks StageRanks::available(ValueId v) const {
  OpId maker = value(v).producer;
  if (maker != kNone) return run_at_[static_cast<size_t>(maker)];
  if (!value(v).state) return everyone_;
  auto holder = holders_.find(v);
  return holder == holders_.end() ? nobody_ : holder->second;
}

void StageRanks::need(ValueId v, const Ranks& ranks) {
  needed_[static_cast<size_t>(v)] |= ranks;
  if (value(v).state) holders_[v] |= ranks;
}

// Repeats place_update until no state gets a new holder: a coordinate where an update runs becomes
// a holder of the states that the update reads, and these are then updated there too.
void StageRanks::settle_update() {
  for (size_t before = SIZE_MAX; before != held();) {
    before = held();
    place_update();
  }
}

size_t StageRanks::held() const {
  size_t n = 0;
  for (auto& [v, ranks] : holders_) n += ranks.count();
  return n;
}

// Places the ops on tensors of the update, backwards from the states' new values.
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

// Places the ops that make scalars: where their tensor is, or everywhere if they read scalars only.
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
    if (there.none()) {  // only this op reads the tensor
      there = only(at_hand(*tensor).find_first());
      need_chain(*tensor, there);
    }
    run_at_[i] = only(there.find_first());
  }
}

// The coordinates that have the tensors from which v is computed; if none has all of them, those
// that have the first ones.
Ranks StageRanks::at_hand(ValueId v) const {
  Ranks there = available(v);
  if (there.any()) return there;
  there = everyone_;
  const OpId maker = value(v).producer;
  if (maker == kNone) return there;
  for (ValueId in : from_.ops()[static_cast<size_t>(maker)].in)
    if (const Ranks both = scalar(in) ? nobody_ : there & at_hand(in); both.any()) there = both;
  return there;
}

// Has v, and the tensors from which it is computed, computed on these ranks as well. Scalars
// travel.
void StageRanks::need_chain(ValueId v, const Ranks& ranks) {
  if (scalar(v)) return;
  need(v, ranks);
  OpId maker = value(v).producer;
  if (maker == kNone || !is_late(static_cast<size_t>(maker)) ||
      partial_input(from_.ops()[static_cast<size_t>(maker)]))
    return;
  run_at_[static_cast<size_t>(maker)] |= ranks;
  for (ValueId in : from_.ops()[static_cast<size_t>(maker)].in) need_chain(in, ranks);
}

void StageRanks::find_readers() {
  for (size_t i = 0; i < from_.ops().size(); ++i)
    for (ValueId v : from_.ops()[i].in) {
      needed_[static_cast<size_t>(v)] |= run_at_[i];
      if (value(v).state) holders_[v] |= run_at_[i];
      readers_[static_cast<size_t>(v)].push_back(i);
    }
  for (size_t i = 0; i < from_.ops().size(); ++i)
    for (ValueId v : from_.ops()[i].out)
      travels_[static_cast<size_t>(v)] = !needed(v).is_subset_of(run_at_[i]);
}

}  // namespace orrery
