// SPDX-License-Identifier: Apache-2.0
//
// Pointwise fusion. Groups grow from the last op backwards: an op joins the group of a consumer of
// equal dims when everything else that reads it runs after the group, so that the group can run in
// place of its last member. Values read outside the group become further outputs.
#include <algorithm>
#include <map>
#include <set>

#include "lower/localize.h"

namespace orrery {
namespace {

// Beyond these an expression no longer fits a kernel's tile registers.
constexpr size_t kMaxInputs = 24, kMaxInstrs = 96;

class Fuser {
 public:
  explicit Fuser(LocalProgram& local) : local_(local), p_(local.program) {
    size_t n = p_.ops().size();
    group_.resize(n);
    for (size_t i = 0; i < n; ++i) group_[i] = i;
    users_.resize(p_.values().size());
    for (size_t i = 0; i < n; ++i)
      for (ValueId v : p_.ops()[i].in) users_[at(v)].push_back(i);
    for (const Total& t : local.totals) pinned_.insert(t.partial);
    for (auto& [state, next] : p_.updates()) pinned_.insert(next);
    for (auto& [name, id] : p_.outputs()) pinned_.insert(id);
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

  // A group is named by its last member, where it runs.
  void join(size_t i) {
    std::set<size_t> groups;
    bool all = true;
    for (ValueId v : op(i).out) {
      all = all && !pinned_.count(v);
      for (size_t user : users_[at(v)]) {
        if (fits(i, user))
          groups.insert(group_[user]);
        else
          all = false;
      }
    }
    if (groups.empty()) return;
    if (constant(op(i)) && all) {  // cheap to repeat: it goes into every consumer
      inlined_.insert(i);
      return;
    }
    size_t host = *groups.begin();
    for (ValueId v : op(i).out)
      for (size_t user : users_[at(v)])
        if (group_[user] != host && group_[user] <= host) return;
    if (!has_room(i, host)) return;
    group_[i] = host;
  }

  bool fits(size_t producer, size_t user) const {
    const Op &a = op(producer), &b = op(user);
    if (b.kind != "pointwise" || per_sample(a) != per_sample(b)) return false;
    return constant(a) || (dims(producer) == dims(user) && run_together(a, b));
  }

  // In slices, what runs at other times cannot be joined.
  bool run_together(const Op& a, const Op& b) const {
    if (!local_.leaves.sliced || !per_sample(a)) return true;
    return a.phase == b.phase && a.stage == b.stage && once(a) == once(b);
  }
  bool once(const Op& op) const { return p_.value(op.out[0]).batch == Batch::none; }

  bool has_room(size_t i, size_t host) const {
    size_t instrs = op(i).expr.instrs.size();
    std::set<ValueId> inputs(op(i).in.begin(), op(i).in.end());
    for (size_t k = i + 1; k <= host;
         ++k)  // later ops have joined, up to the one that names the group
      if (group_[k] == host && op(k).kind == "pointwise") {
        instrs += op(k).expr.instrs.size();
        inputs.insert(op(k).in.begin(), op(k).in.end());
      }
    return instrs <= kMaxInstrs && inputs.size() <= kMaxInputs;
  }

  void rebuild() {
    std::map<size_t, std::vector<size_t>> members;
    for (size_t i = 0; i < group_.size(); ++i)
      if (op(i).kind == "pointwise" && !inlined_.count(i)) members[group_[i]].push_back(i);
    std::vector<Op> ops;
    for (size_t i = 0; i < group_.size(); ++i) {
      if (op(i).kind != "pointwise")
        ops.push_back(op(i));
      else if (members.count(i))
        ops.push_back(merge(members[i]));
    }
    p_.mutable_ops() = std::move(ops);
    for (size_t i = 0; i < p_.ops().size(); ++i)
      for (size_t j = 0; j < op(i).out.size(); ++j) {
        Value& v = p_.mutable_value(op(i).out[j]);
        v.producer = static_cast<OpId>(i), v.out_index = static_cast<int32_t>(j);
      }
  }

  Op merge(const std::vector<size_t>& members) {
    Op fused = op(members.back());
    fused.in.clear(), fused.out.clear(), fused.expr = {};
    fused.attrs["dims"] = dims(members.back());
    std::map<ValueId, int32_t> registers;
    for (size_t i : members) emit(op(i), fused, registers);
    std::set<size_t> inside(members.begin(), members.end());
    for (size_t i : members)
      for (ValueId v : op(i).out) {
        bool needed = pinned_.count(v) || i == members.back();
        for (size_t user : users_[at(v)]) needed = needed || !inside.count(user);
        if (!needed) continue;
        fused.out.push_back(v);
        fused.expr.outputs.push_back(registers.at(v));
      }
    return fused;
  }

  // Appends one op's instructions; inputs that the group computes become its registers.
  void emit(const Op& op, Op& fused, std::map<ValueId, int32_t>& registers) {
    std::vector<int32_t> local(op.expr.instrs.size());
    for (size_t k = 0; k < local.size(); ++k) {
      orr_instr i = op.expr.instrs[k];
      if (i.fn == ORR_FN_INPUT) {
        local[k] = operand(op.in[static_cast<size_t>(i.a)], fused, registers);
        continue;
      }
      for (int32_t* r : {&i.a, &i.b, &i.c})
        if (*r >= 0) *r = local[static_cast<size_t>(*r)];
      local[k] = find_or_push(fused.expr, i);
    }
    for (size_t j = 0; j < op.out.size(); ++j)
      registers[op.out[j]] = local[static_cast<size_t>(op.expr.outputs[j])];
  }

  int32_t operand(ValueId v, Op& fused, std::map<ValueId, int32_t>& registers) {
    if (auto known = registers.find(v); known != registers.end()) return known->second;
    OpId producer = p_.value(v).producer;
    if (producer != kNone && inlined_.count(static_cast<size_t>(producer))) {
      emit(op(static_cast<size_t>(producer)), fused, registers);
      return registers.at(v);
    }
    fused.in.push_back(v);
    orr_instr load{
        ORR_FN_INPUT, p_.type(v).dtype, static_cast<int32_t>(fused.in.size()) - 1, -1, -1, 0, 0};
    fused.expr.instrs.push_back(load);
    return registers[v] = static_cast<int32_t>(fused.expr.instrs.size()) - 1;
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
  std::vector<std::vector<size_t>> users_;
  std::set<ValueId> pinned_;
  std::set<size_t> inlined_;
};

}  // namespace

void fuse_pointwise(LocalProgram& local) { Fuser(local).run(); }

}  // namespace orrery
