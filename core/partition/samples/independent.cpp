// SPDX-License-Identifier: Apache-2.0
//
// A sum over the batch that both the update and the step's report need is computed twice: once to
// be summed over the ranks that train together, once to be summed over all. So are the values that
// are computed from it before the update. Ops of the update are not doubled: what the step reports
// of them is the mean of the coordinates' own values.
#include "partition/independent.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/build_comm.h"
#include "program/op.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

class Separator {
 public:
  Separator(Program& p, const Mesh& mesh, int64_t microbatches)
      : p_(p), mesh_(mesh), with_samples_(count_with_samples(microbatches)) {}

  void run() {
    // An output of the step may be a value of the update, such as a gradient's norm. Ops that such
    // an output needs are those of the update: none is emitted a second time for the output.
    const auto of_update = [&](ValueId v) {
      const OpId maker = p_.value(v).producer;
      return maker != kNone && p_.ops()[static_cast<size_t>(maker)].phase == Phase::update;
    };
    std::vector<ValueId> updated, reported;
    for (auto& [state, next] : p_.updates()) updated.push_back(next);
    for (auto& [name, id] : p_.outputs()) (of_update(id) ? updated : reported).push_back(id);
    const std::vector<bool> for_update = ops_behind(p_, updated),
                            for_report = ops_behind(p_, reported, of_update);
    from_.swap(p_.mutable_ops());
    moved_.assign(from_.size(), kNone);
    for (size_t i = 0; i < from_.size(); ++i) emit(i, for_update[i], for_report[i]);
    p_.set_phase(Phase::update);
    for (auto& [state, next] : p_.mutable_updates()) {
      p_.set_site(p_.value(state).site);
      next = unless_empty(local(next), state);
    }
    const std::vector<bool> of_weights = made_of_weights();
    for (auto& [name, id] : p_.mutable_outputs())
      if (is_local(id) || of_weights[static_cast<size_t>(id)]) id = mean_of_replicas(id);
  }

 private:
  // How many of the coordinates that train apart get samples. They are the first ones: the last
  // coordinates of a ragged batch may have only microbatches behind its last sample.
  int count_with_samples(int64_t microbatches) const {
    const std::vector<int64_t> first = assign_microbatches(microbatches, mesh_);
    const int ranks = mesh_.size_of(mesh_.independent_axis), inner = mesh_.gradient_ranks();
    const int64_t batch = p_.batch_size(), rows = (batch + microbatches - 1) / microbatches;
    int n = ranks;
    while (n > 1 && first[static_cast<size_t>((n - 1) * inner)] * rows >= batch) --n;
    return n;
  }

  // v, but `otherwise` on a coordinate without samples, where a mean is a division by 0.
  ValueId unless_empty(ValueId v, Operand otherwise) {
    if (with_samples_ == mesh_.size_of(mesh_.independent_axis)) return v;
    if (has_samples_ == kNone) {
      const int64_t ranks = mesh_.size_of(mesh_.independent_axis);
      const ValueId me =
          p_.add1("coordinate", {},
                  {{"axis", mesh_.independent_axis}, {"ranks", ranks}, {"unmarked", int64_t{1}}});
      has_samples_ = p_.pointwise(ORR_FN_LT, {me, Operand::number(with_samples_)});
    }
    return p_.pointwise(ORR_FN_SELECT, {has_samples_, v, otherwise});
  }

  bool sums(const Op& op) const {
    const auto batch = [&](ValueId v) { return p_.value(v).batch(); };
    return !op.out.empty() && batch(op.out[0]) == Batch::partial &&
           std::any_of(op.in.begin(), op.in.end(),
                       [&](ValueId v) { return batch(v) == Batch::sharded; });
  }

  // The version of v that updates read: made of sums over the ranks that train together.
  ValueId local(ValueId v) const {
    auto found = local_.find(v);
    return found == local_.end() ? v : found->second;
  }

  void emit(size_t i, bool for_update, bool for_report) {
    Op op = from_[i];
    if (op.twin != kNone) op.twin = moved_[static_cast<size_t>(op.twin)];
    const bool sum = sums(op),
               reads_local = std::any_of(op.in.begin(), op.in.end(),
                                         [&](ValueId v) { return local_.count(v) > 0; });
    const bool makes_local = for_update && (sum || reads_local);
    moved_[i] = static_cast<OpId>(p_.ops().size());
    if (!makes_local || (for_report && op.phase != Phase::update)) {
      p_.append(op);
      if (!makes_local) return;
      for (ValueId& v : op.out) v = local_[v] = like(v);
      op.twin = kNone;
    } else {
      for (ValueId v : op.out) local_[v] = v;
    }
    for (ValueId& v : op.in) v = local(v);
    if (sum) op.completed_over = mesh_.gradient_axis();
    p_.append(std::move(op));
  }

  ValueId like(ValueId v) {
    const Value original = p_.value(v);
    const ValueId made = p_.new_value(original.type, original.role, original.name);
    Value& copy = p_.mutable_value(made);
    copy.set_batch(original.batch(), original.batch_dim()), copy.site = original.site;
    return made;
  }

  bool is_local(ValueId v) const { return local_.count(v) && local(v) == v; }

  // By value: whether it is computed from states, which differ between these ranks, without a sum
  // over the batch, and belongs to no sample. A penalty on the weights is.
  std::vector<bool> made_of_weights() const {
    std::vector<bool> found(p_.values().size());
    for (auto& [state, next] : p_.updates()) found[static_cast<size_t>(state)] = true;
    for (const Op& op : p_.ops()) {
      const bool differs = !sums(op) && std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) {
        return found[static_cast<size_t>(v)];
      });
      for (ValueId v : op.out) found[static_cast<size_t>(v)] = differs;
    }
    for (size_t v = 0; v < found.size(); ++v)
      if (p_.values()[v].batch() == Batch::sharded || !is_real(p_.values()[v].type.dtype))
        found[v] = false;
    return found;
  }

  ValueId mean_of_replicas(ValueId v) {
    p_.set_site(p_.value(v).site);
    if (p_.value(v).batch() != Batch::none) v = p_.add1("total", {v});
    const ValueId sum = p_.add1(
        "all_reduce", {unless_empty(v, Operand::number(0))},
        {{"axis", mesh_.independent_axis}, {"origin", mesh_.maker_of(mesh_.independent_axis)}});
    return p_.pointwise(ORR_FN_MUL, {sum, Operand::number(1.0 / with_samples_)});
  }

  Program& p_;
  const Mesh& mesh_;
  int with_samples_;
  ValueId has_samples_ = kNone;
  std::vector<Op> from_;
  std::vector<OpId> moved_;
  std::map<ValueId, ValueId> local_;  // what `local` returns
};

}  // namespace

void sum_independently(Program& p, const Mesh& mesh, int64_t microbatches) {
  Separator(p, mesh, microbatches).run();
}

static ValueId one_value(Program& p, ValueId v) {
  const State& s = *p.value(v).state;
  p.mutable_value(v).set_varying(s.varying);
  if (s.leave == Leave::refuse)
    fail(ORR_INVALID,
         "{}'{}' has a value of its own on each rank of axis '{}', and none for all of them",
         s.site.prefix(), s.name, s.varying);
  if (s.leave == Leave::first) return build::broadcast(p, v, s.varying, 0);
  return build::all_reduce(p, v, s.varying, s.leave == Leave::sum ? "sum" : "mean");
}

void read_one_value(Program& p, const std::set<const State*>& alike) {
  std::vector<Op> ops;
  ops.swap(p.mutable_ops());
  std::map<std::pair<ValueId, int32_t>, ValueId> one;  // by the stage that reads it
  p.set_phase(Phase::forward);
  for (const Op& op : ops)
    for (ValueId v : op.in) {
      const auto& state = p.value(v).state;
      if (!state || state->varying.empty() || alike.count(state.get())) continue;
      if (one.count({v, op.stage})) continue;
      const size_t first = p.ops().size();
      p.set_site(op.site);
      one[{v, op.stage}] = one_value(p, v);
      for (size_t i = first; i < p.ops().size(); ++i) p.mutable_ops()[i].stage = op.stage;
    }
  for (Op& op : ops) {
    for (ValueId& v : op.in)
      if (auto found = one.find({v, op.stage}); found != one.end()) v = found->second;
    op.twin = kNone;
    p.append(std::move(op));
  }
}

}  // namespace orrery
