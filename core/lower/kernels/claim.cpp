// SPDX-License-Identifier: Apache-2.0
//
// Makes one op of each group of ops that a kernel plugin claims (orrery/kernel.h).
#include <algorithm>
#include <map>

#include "base/error.h"
#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"
#include "partition/timetable.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "program/op_group.h"

namespace orrery {
namespace {

class Claims {
 public:
  Claims(LocalProgram& local, const std::vector<std::string>& kernels)
      : p_(local.program),
        names_(kernels),
        kernels_(kernels),
        pinned_(read_from_outside(local)),
        readers_(p_.values().size()),
        maker_(p_.values().size(), kNone),
        group_(p_.ops().size(), kNone),
        one_by_one_(local.microbatches.one_by_one),
        segments_(segments_of(p_, one_by_one_ || local.microbatches.idle(), one_by_one_)) {
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      for (ValueId v : p_.ops()[i].in) readers_[at(v)].push_back(static_cast<OpId>(i));
      for (ValueId v : p_.ops()[i].out) maker_[at(v)] = static_cast<OpId>(i);
    }
    for (const Total& t : local.totals) {
      maker_[at(t.whole)] = maker_[at(t.partial)];
      for (OpId reader : readers_[at(t.whole)]) waits_[t.partial].push_back(reader);
    }
  }

  void run(bool fused) {
    const OpGroup all = whole();
    const AbiGroup program(all, calls(), fused);
    for (const std::string& name : names_) {
      const orr_kernel_api& api = Registry::get().kernel(name);
      const orr_claims claims = {sizeof claims, this, take};
      if (api.claim)
        check(api.claim(api.self, program.get(), &claims), "kernel '" + name + "': claim");
    }
    if (!taken_.empty()) rebuild();
  }

 private:
  static size_t at(int32_t id) { return static_cast<size_t>(id); }

  // All ops, and the values as they are numbered in the program.
  OpGroup whole() const {
    OpGroup all{p_.ops(), {}, {}, {}};
    for (size_t v = 0; v < p_.values().size(); ++v) {
      all.types.push_back(p_.values()[v].type);
      if (maker_[v] == kNone) all.in.push_back(static_cast<ValueId>(v));
      if (pinned_[v]) all.out.push_back(static_cast<ValueId>(v));
    }
    return all;
  }

  // By op: a number for what runs in the same calls.
  std::vector<int32_t> calls() const {
    std::vector<int32_t> found;
    for (size_t i = 0; i < p_.ops().size(); ++i)
      found.push_back(2 * p_.ops()[i].stage * static_cast<int32_t>(Segment::update) +
                      2 * static_cast<int32_t>(segments_[i]) +
                      (p_.ops()[i].phase == Phase::backward));
    return found;
  }

  static int32_t take(void* arg, const int32_t* ops, int32_t n) {
    auto& self = *static_cast<Claims*>(arg);
    return self.is_one({ops, ops + std::max(n, 0)}) ? 1 : 0;
  }

  bool is_one(const std::vector<OpId>& ops) {
    if (ops.size() < 2 || !may_be_one(ops)) return false;
    const OpId slot = slot_of(ops);
    if (slot == kNone) return false;
    const Op one = as_one(p_, ops, [&](ValueId v) { return is_read_elsewhere(v, ops); });
    if (one.out.empty() || !is_taken(one, ops)) return false;
    for (OpId id : ops) group_[at(id)] = static_cast<int32_t>(taken_.size());
    taken_.push_back(one);
    slot_.push_back(slot);
    return true;
  }

  bool may_be_one(const std::vector<OpId>& ops) const {
    const auto count = static_cast<OpId>(p_.ops().size());
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i] < 0 || ops[i] >= count || (i > 0 && ops[i] <= ops[i - 1])) return false;
      const Op& op = p_.ops()[at(ops[i])];
      if (group_[at(ops[i])] != kNone || names_axis(op.kind) || op.comm) return false;
      for (ValueId v : op.in)
        if (p_.value(v).batch() == Batch::partial && is_among(maker_[at(v)], ops))
          return false;  // is a sum only after its exchange
      if (segments_[at(ops[i])] != segments_[at(ops[0])] ||
          op.stage != p_.ops()[at(ops[0])].stage || op.phase != p_.ops()[at(ops[0])].phase)
        return false;
    }
    return true;
  }

  // The first of the ops in whose place the group can stand without moving any other, or kNone.
  OpId slot_of(const std::vector<OpId>& ops) const {
    OpId first = ops.front();  // behind which all is made that it reads
    for (OpId id : ops)
      for (ValueId v : p_.ops()[at(id)].in)
        if (const OpId maker = maker_[at(v)]; maker != kNone && !is_among(maker, ops))
          first = std::max(first, place(maker));
    const auto slot = std::lower_bound(ops.begin(), ops.end(), first);
    return slot != ops.end() && is_read_behind(*slot, ops) ? *slot : kNone;
  }

  // Whether what reads the group, or a sum over ranks of what it makes, comes behind that op. So
  // exchanges keep the order, which is the same on all ranks.
  bool is_read_behind(OpId slot, const std::vector<OpId>& ops) const {
    const auto is_behind = [&](OpId id) { return place(id) > slot; };
    const auto fits = [&](OpId id) { return is_among(id, ops) || is_behind(id); };
    for (OpId id : ops)
      for (ValueId v : p_.ops()[at(id)].out) {
        const auto waits = waits_.find(v);
        if (!std::all_of(readers_[at(v)].begin(), readers_[at(v)].end(), fits) ||
            (waits != waits_.end() &&
             !std::all_of(waits->second.begin(), waits->second.end(), is_behind)))
          return false;
      }
    return true;
  }

  static bool is_among(OpId id, const std::vector<OpId>& ops) {
    return std::binary_search(ops.begin(), ops.end(), id);
  }

  // Where the op will stand: where it does, or where its group will.
  OpId place(OpId id) const {
    const int32_t group = group_[at(id)];
    return group == kNone ? id : slot_[at(group)];
  }

  bool is_read_elsewhere(ValueId v, const std::vector<OpId>& ops) const {
    return pinned_[at(v)] || std::any_of(readers_[at(v)].begin(), readers_[at(v)].end(),
                                         [&](OpId reader) { return !is_among(reader, ops); });
  }

  bool is_taken(const Op& one, const std::vector<OpId>& ops) const {
    std::vector<const Op*> alone;
    for (OpId id : ops)
      if (op_def(p_.ops()[at(id)].kind).form) alone.push_back(&p_.ops()[at(id)]);
    return taken_as_joined(kernels_, p_, one, alone);
  }

  void rebuild() {
    std::vector<Op> ops;
    std::swap(ops, p_.mutable_ops());
    for (size_t i = 0; i < ops.size(); ++i) {
      const int32_t group = group_[i];
      if (group == kNone)
        p_.append(std::move(ops[i]));
      else if (slot_[at(group)] == static_cast<OpId>(i))
        p_.append(std::move(taken_[at(group)]));
    }
  }

  Program& p_;
  std::vector<std::string> names_;
  KernelChoice kernels_;
  std::vector<char> pinned_;                    // by value: read from outside
  std::vector<std::vector<OpId>> readers_;      // by value
  std::vector<OpId> maker_;                     // by value; of a sum over ranks that of its summand
  std::map<ValueId, std::vector<OpId>> waits_;  // by summand: what reads the sum over ranks
  std::vector<int32_t> group_;                  // by op: the group that it is in
  bool one_by_one_;
  std::vector<Segment> segments_;  // by op
  std::vector<Op> taken_;          // by group
  std::vector<OpId> slot_;         // by group: the op in whose place it will stand
};

}  // namespace

void claim_groups(LocalProgram& local, const std::vector<std::string>& kernels, bool fused) {
  if (std::any_of(kernels.begin(), kernels.end(),
                  [](const std::string& name) { return Registry::get().kernel(name).claim; }))
    Claims(local, kernels).run(fused);
}

}  // namespace orrery
