// SPDX-License-Identifier: Apache-2.0
//
// Fuses pointwise ops: makes one op of each group (lower/kernels/fuse_groups.h). Values that are
// read outside the group become further outputs.
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <map>

#include "lower/kernels/fuse_groups.h"
#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

class Fuser {
 public:
  explicit Fuser(LocalProgram& local)
      : p_(local.program),
        pinned_(read_from_outside(local)),
        other_(local, pinned_),
        groups_(local, other_, pinned_),
        registers_(p_.values().size(), kNone) {}

  void run() {
    const std::vector<std::vector<size_t>> views = take_views();
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      if (op(i).kind == "pointwise") {
        if (groups_.of(i) == i && !groups_.is_inlined(i)) merge(i);
      } else if (op(i).kind != "reshape") {
        ops_.push_back(
            std::move(p_.mutable_ops()[i]));  // pointwise ops and reshapes are still read
      }
      for (size_t view : views[i]) ops_.push_back(op(view));
    }
    p_.mutable_ops().clear();
    for (Op& op : ops_) p_.append(std::move(op));
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }
  const Op& op(size_t i) const { return p_.ops()[i]; }

  // By op: the reshapes that stand there. Those of what a group makes follow the group, if others
  // read them; all others stay where they are.
  std::vector<std::vector<size_t>> take_views() const {
    std::vector<std::vector<size_t>> views(p_.ops().size());
    for (size_t i = 0; i < p_.ops().size(); ++i) {
      if (op(i).kind != "reshape") continue;
      const OpId maker = p_.value(other_.root(op(i).out[0])).producer;
      size_t place = i;
      if (maker != kNone && op(at(maker)).kind == "pointwise") {
        if (groups_.is_inlined(at(maker)) ||
            !groups_.is_read_outside(op(i).out[0], groups_.of(at(maker))))
          continue;
        place = std::max(i, groups_.of(at(maker)));
      }
      views[place].push_back(i);
    }
    return views;
  }

  // Makes one op of the group, with the reshapes between its dims and those of its members.
  void merge(size_t group) {
    const Dims& dims = groups_.dims(group);
    std::vector<size_t> members = groups_.members(group);
    std::sort(members.begin(), members.end());
    Op& last = p_.mutable_ops()[group];
    Op fused;
    fused.kind = last.kind, fused.attrs = std::move(last.attrs), fused.phase = last.phase;
    fused.site = last.site, fused.twin = last.twin, fused.stage = last.stage;
    fused.attrs.set("dims", dims);
    for (size_t i : members) emit(op(i), fused, dims);
    std::vector<Op> behind;
    for (size_t i : members)
      for (ValueId v : op(i).out) {
        if (i != group && !groups_.is_read_outside(v, group)) continue;
        fused.expr.outputs.push_back(registers_[at(v)]);
        fused.out.push_back(p_.type(v).dims == dims ? v : twin_of(v, dims));
        if (fused.out.back() != v) behind.push_back(reshape(fused, fused.out.back(), v));
      }
    for (ValueId v : loaded_) registers_[at(v)] = kNone;
    loaded_.clear(), seen_.clear();
    ops_.push_back(std::move(fused));
    for (Op& op : behind) ops_.push_back(std::move(op));
  }

  // A value that is v with other dims.
  ValueId twin_of(ValueId v, const Dims& dims) {
    const ValueId made = p_.new_value({p_.type(v).dtype, dims}, Role::activation);
    p_.mutable_value(made).layout = p_.value(v).layout;
    p_.mutable_value(made).site = p_.value(v).site;
    registers_.push_back(kNone);
    return made;
  }

  Op reshape(const Op& beside, ValueId from, ValueId to) const {
    Op view;
    view.kind = "reshape", view.in = {from}, view.out = {to}, view.phase = beside.phase;
    view.site = beside.site, view.twin = beside.twin, view.stage = beside.stage;
    view.attrs.set("dims", p_.type(to).dims);
    return view;
  }

  // Appends an op's instructions to the fused op. An input that the group computes is read from its
  // register.
  void emit(const Op& op, Op& fused, const Dims& dims) {
    boost::container::small_vector<int32_t, 8> local(op.expr.instrs.size());
    for (size_t k = 0; k < local.size(); ++k) {
      orr_instr i = op.expr.instrs[k];
      if (i.fn == ORR_FN_INPUT) {
        local[k] = operand(op.in[static_cast<size_t>(i.a)], op, fused, dims);
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

  // The register of an input of one of the members.
  int32_t operand(ValueId v, const Op& member, Op& fused, const Dims& dims) {
    const ValueId root = other_.root(v);
    const OpId producer = p_.value(root).producer;
    if (producer != kNone && groups_.is_inlined(at(producer)) && registers_[at(root)] == kNone)
      emit(op(at(producer)), fused, dims);
    const bool whole = p_.type(v).elements() == p_.type(member.out[0]).elements();
    if (registers_[at(root)] != kNone && (whole || groups_.is_inlined(at(producer))))
      return registers_[at(root)];
    v = as_seen(v, member, fused, dims);
    if (registers_[at(v)] != kNone) return registers_[at(v)];
    fused.in.push_back(v);
    orr_instr read{
        ORR_FN_INPUT, p_.type(v).dtype, static_cast<int32_t>(fused.in.size()) - 1, -1, -1, 0, 0};
    fused.expr.instrs.push_back(read);
    return load(v, static_cast<int32_t>(fused.expr.instrs.size()) - 1);
  }

  // A member's input as one of the fused op, which has the dims `to`.
  ValueId as_seen(ValueId v, const Op& member, const Op& fused, const Dims& to) {
    const Dims& own = p_.type(member.out[0]).dims;
    if (own == to) return v;
    const Dims seen = seen_in(p_.type(v).dims, own, to).value();
    if (const ValueId known = other_.known(v, seen); known != kNone) return known;
    ValueId& view = seen_.try_emplace({other_.root(v), seen}, kNone).first->second;
    if (view == kNone) {
      view = twin_of(v, seen);
      ops_.push_back(reshape(fused, v, view));
    }
    return view;
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

  Program& p_;
  const std::vector<char> pinned_;  // by value: read from outside
  const OtherDims other_;
  const FuseGroups groups_;
  std::vector<int32_t> registers_;  // of the group being merged, by value; kNone: in none yet
  std::vector<ValueId> loaded_;     // the values that have a register
  std::map<std::pair<ValueId, Dims>, ValueId> seen_;  // inputs of it in other dims
  std::vector<Op> ops_;                               // of the fused program
};

}  // namespace

void fuse_pointwise(LocalProgram& local) { Fuser(local).run(); }

}  // namespace orrery
