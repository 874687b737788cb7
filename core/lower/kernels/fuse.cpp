// SPDX-License-Identifier: Apache-2.0
//
// Fuses pointwise ops. Groups grow from the last op backwards: an op joins the group of an op that
// reads it and has equal dims, if everything else that reads it runs after the group. The group
// then runs in place of its last member. Values that are read outside the group become further
// outputs.
#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

class Fuser {
 public:
  explicit Fuser(LocalProgram& local)
      : local_(local),
        p_(local.program),
        pinned_(read_from_outside(local)),
        once_(once_a_step(local.program)) {
    size_t n = p_.ops().size();
    group_.resize(n), size_.resize(n), inlined_.resize(n);
    users_.resize(p_.values().size());
    registers_.assign(p_.values().size(), kNone);
    for (size_t i = 0; i < n; ++i) {
      group_[i] = i;
      for (ValueId v : op(i).in) users_[at(v)].push_back(i);
      if (op(i).kind == "pointwise") size_[i].add(op(i));
    }
  }

  void run() {
    for (size_t i = p_.ops().size(); i-- > 0;)
      if (p_.ops()[i].kind == "pointwise") join(i);
    rebuild();
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }
  const Op& op(size_t i) const { return p_.ops()[i]; }
  const Dims& dims(size_t i) const { return p_.type(op(i).out[0]).dims; }
  static bool per_sample(const Op& op) { return op.phase != Phase::update; }
  static bool constant(const Op& op) { return op.kind == "pointwise" && op.in.empty(); }

  // What a group reads from memory, and how many instructions compute.
  struct Size {
    size_t computes = 0;
    boost::container::small_vector<ValueId, 4> inputs;  // each once

    // Adds an op in front of those that the group has.
    void add(const Op& op) {
      for (const orr_instr& i : op.expr.instrs) computes += i.fn != ORR_FN_INPUT;
      const auto is = [](const auto& values, ValueId v) {
        return std::find(values.begin(), values.end(), v) != values.end();
      };
      inputs.erase(
          std::remove_if(inputs.begin(), inputs.end(), [&](ValueId v) { return is(op.out, v); }),
          inputs.end());
      for (ValueId v : op.in)
        if (!is(inputs, v)) inputs.push_back(v);
    }
    bool fits() const {
      return inputs.size() <= kMostInputs && computes + inputs.size() <= kMostInstrs;
    }
  };

  // Joins op i to a group. A group has the index of its last member, in whose place it runs.
  void join(size_t i) {
    if (constant(op(i)) && is_read_by_groups_alone(i)) {
      inlined_[i] = true;  // cheap to repeat: it is copied into every group that reads it
      return;
    }
    size_t host = SIZE_MAX;  // the first group that it can join
    for (ValueId v : op(i).out)
      for (size_t user : users_[at(v)])
        if (fits(i, user)) host = std::min(host, group_[user]);
    if (host == SIZE_MAX) return;
    for (ValueId v : op(i).out)
      for (size_t user : users_[at(v)])
        if (group_[user] != host && group_[user] <= host) return;
    Size together = size_[host];
    together.add(op(i));
    if (!together.fits()) return;
    size_[host] = std::move(together);
    group_[i] = host;
  }

  static bool are_pointwise(const Op& a, const Op& b) {
    return b.kind == "pointwise" && per_sample(a) == per_sample(b);
  }

  bool is_read_by_groups_alone(size_t i) const {
    bool read = false;
    for (ValueId v : op(i).out) {
      if (pinned_[at(v)]) return false;
      for (size_t user : users_[at(v)]) {
        if (!are_pointwise(op(i), op(user))) return false;
        read = true;
      }
    }
    return read;
  }

  // A constant that something else reads, too, has dims of its own.
  bool fits(size_t producer, size_t user) const {
    return are_pointwise(op(producer), op(user)) && dims(producer) == dims(user) &&
           run_together(producer, user);
  }

  // Whether two ops run in the same call: where microbatches run in a call each, segment and chunk
  // must be the same.
  bool run_together(size_t i, size_t k) const {
    const Op &a = op(i), &b = op(k);
    if (!local_.microbatches.one_by_one || !per_sample(a)) return true;
    return a.phase == b.phase && a.stage == b.stage && once_[i] == once_[k];
  }

  void rebuild() {
    std::vector<std::vector<size_t>> members(group_.size());
    for (size_t i = 0; i < group_.size(); ++i)
      if (op(i).kind == "pointwise" && !inlined_[i]) members[group_[i]].push_back(i);
    std::vector<Op> ops;
    for (size_t i = 0; i < group_.size(); ++i) {
      if (op(i).kind != "pointwise")
        ops.push_back(std::move(p_.mutable_ops()[i]));
      else if (!members[i].empty())
        ops.push_back(merge(members[i]));
    }
    p_.mutable_ops().clear();
    for (Op& op : ops) p_.append(std::move(op));
  }

  Op merge(const std::vector<size_t>& members) {
    Op& last = p_.mutable_ops()[members.back()];
    Op fused;
    fused.kind = last.kind, fused.attrs = std::move(last.attrs), fused.phase = last.phase;
    fused.site = last.site, fused.twin = last.twin, fused.stage = last.stage;
    fused.attrs.set("dims", dims(members.back()));
    for (size_t i : members) emit(op(i), fused);
    for (size_t i : members)
      for (ValueId v : op(i).out) {
        bool needed = pinned_[at(v)] || i == members.back();
        for (size_t user : users_[at(v)]) needed = needed || group_[user] != members.back();
        if (!needed) continue;
        fused.out.push_back(v);
        fused.expr.outputs.push_back(registers_[at(v)]);
      }
    for (ValueId v : loaded_) registers_[at(v)] = kNone;
    loaded_.clear();
    return fused;
  }

  // Appends an op's instructions to the fused op. An input that the group computes is read from its
  // register.
  void emit(const Op& op, Op& fused) {
    boost::container::small_vector<int32_t, 8> local(op.expr.instrs.size());
    for (size_t k = 0; k < local.size(); ++k) {
      orr_instr i = op.expr.instrs[k];
      if (i.fn == ORR_FN_INPUT) {
        local[k] = operand(op.in[static_cast<size_t>(i.a)], fused);
        continue;
      }
      for (int32_t* r : {&i.a, &i.b, &i.c})
        if (*r >= 0) *r = local[static_cast<size_t>(*r)];
      local[k] = find_or_push(fused.expr, i);
    }
    for (size_t j = 0; j < op.out.size(); ++j)
      load(op.out[j], local[static_cast<size_t>(op.expr.outputs[j])]);
  }

  int32_t load(ValueId v, int32_t into) {
    loaded_.push_back(v);
    return registers_[at(v)] = into;
  }

  int32_t operand(ValueId v, Op& fused) {
    if (registers_[at(v)] != kNone) return registers_[at(v)];
    OpId producer = p_.value(v).producer;
    if (producer != kNone && inlined_[static_cast<size_t>(producer)]) {
      emit(op(static_cast<size_t>(producer)), fused);
      return registers_[at(v)];
    }
    fused.in.push_back(v);
    orr_instr read{
        ORR_FN_INPUT, p_.type(v).dtype, static_cast<int32_t>(fused.in.size()) - 1, -1, -1, 0, 0};
    fused.expr.instrs.push_back(read);
    return load(v, static_cast<int32_t>(fused.expr.instrs.size()) - 1);
  }

  static int32_t find_or_push(Expr& expr, const orr_instr& i) {
    for (size_t k = 0; k < expr.instrs.size(); ++k) {
      const orr_instr& e = expr.instrs[k];
      if (e.fn == i.fn && e.dtype == i.dtype && e.a == i.a && e.b == i.b && e.c == i.c &&
          e.imm == i.imm)
        return static_cast<int32_t>(k);
    }
    expr.instrs.push_back(i);
    return static_cast<int32_t>(expr.instrs.size()) - 1;
  }

  LocalProgram& local_;
  Program& p_;
  std::vector<size_t> group_;
  std::vector<Size> size_;                                        // by group
  std::vector<boost::container::small_vector<size_t, 2>> users_;  // by value
  std::vector<char> pinned_;                                      // by value: read from outside
  const std::vector<bool> once_;                                  // by op (once_a_step)
  std::vector<char> inlined_;                                     // by op
  std::vector<int32_t> registers_;  // of the group being merged, by value; kNone: in none yet
  std::vector<ValueId> loaded_;     // the values that have a register
};

}  // namespace

void fuse_pointwise(LocalProgram& local) { Fuser(local).run(); }

}  // namespace orrery
