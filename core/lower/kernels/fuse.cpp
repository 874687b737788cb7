// SPDX-License-Identifier: Apache-2.0
//
// Fuses pointwise ops. Groups grow from the last op backwards: an op joins the group of an op that
// reads it, perhaps behind a reshape, and has as many elements, if everything else that reads it
// runs after the group. The group then runs in place of its last member, and has the dims that all
// members may have (lower/kernels/other_dims.h). Values that are read outside the group become
// further outputs.
#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <map>

#include "lower/kernels/joined_ops.h"
#include "lower/kernels/other_dims.h"
#include "lower/lower.h"

namespace orrery {
namespace {

constexpr uint64_t kSmall = 1 << 20;  // bytes that may be kept for longer

class Fuser {
 public:
  explicit Fuser(LocalProgram& local)
      : local_(local),
        p_(local.program),
        pinned_(read_from_outside(local)),
        once_(once_a_step(local.program)),
        other_(local, pinned_) {
    size_t n = p_.ops().size();
    group_.resize(n), size_.resize(n), members_.resize(n), dims_.resize(n), inlined_.resize(n);
    users_.resize(p_.values().size()), kept_.resize(p_.values().size());
    registers_.assign(p_.values().size(), kNone);
    is_whole_.resize(p_.values().size());
    for (const Total& t : local.totals) is_whole_[at(t.whole)] = true;
    for (size_t i = 0; i < n; ++i) {
      group_[i] = i;
      if (op(i).kind == "pointwise") members_[i] = {i}, dims_[i] = dims(i), size_[i].add(op(i));
      note_readers(i);
    }
  }

  void run() {
    for (size_t i = p_.ops().size(); i-- > 0;)
      if (p_.ops()[i].kind == "pointwise") join(i);
    for (size_t i = 0; i < group_.size(); ++i)
      if (group_[i] == i && !inlined_[i] && !members_[i].empty()) join_before(i);
    rebuild();
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }
  const Op& op(size_t i) const { return p_.ops()[i]; }
  const Dims& dims(size_t i) const { return p_.type(op(i).out[0]).dims; }
  // A reshape is read by those who read its result.
  void note_readers(size_t i) {
    const bool view = op(i).kind == "reshape";
    if (view && !pinned_[at(op(i).out[0])]) return;
    for (ValueId v : op(i).in)
      for (ValueId x = v; x != kNone; x = other_.under(x))
        if (view)
          kept_[at(x)] = true;
        else
          users_[at(x)].push_back(i);
  }

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
    const Dims* together = dims_with(i, host);
    Size sum = size_[host];
    sum.add(op(i));
    if (!together || !sum.fits()) return;
    size_[host] = std::move(sum);
    dims_[host] = *together;
    members_[host].push_back(i);
    group_[i] = host;
  }

  // Joins a group to the one that makes the last of what it reads, whose place is earlier. What it
  // makes is kept for longer then, so that it must be small.
  void join_before(size_t group) {
    const size_t host = last_maker(group);
    if (host == SIZE_MAX || op(host).kind != "pointwise" || !may_move(group, host)) return;
    const Dims* together = &dims_[host];
    if (!all_may_have(group, *together)) together = &dims_[group];
    Size sum = size_[host];
    for (size_t i : members_[group]) sum.add(op(i));
    if (!all_may_have(group, *together) || !all_may_have(host, *together) || !sum.fits()) return;
    size_[host] = std::move(sum);
    dims_[host] = Dims(*together);
    for (size_t i : members_[group]) group_[i] = host, members_[host].push_back(i);
    members_[group].clear();
  }

  // The place of what makes the last input of a group; SIZE_MAX if none is made by an op, or one
  // may be the result of an exchange.
  size_t last_maker(size_t group) const {
    size_t last = SIZE_MAX;
    for (size_t i : members_[group])
      for (ValueId v : op(i).in) {
        const OpId maker = p_.value(other_.root(v)).producer;
        if (maker == kNone && is_whole_[at(other_.root(v))]) return SIZE_MAX;
        if (maker == kNone || inlined_[at(maker)] || group_[at(maker)] == group) continue;
        last = last == SIZE_MAX ? group_[at(maker)] : std::max(last, group_[at(maker)]);
      }
    return last;
  }

  bool may_move(size_t group, size_t host) const {
    uint64_t bytes = 0;
    for (size_t i : members_[group]) {
      if (!fits(host, i) || op(host).phase != op(i).phase || op(host).stage != op(i).stage)
        return false;
      for (ValueId v : op(i).in)
        if (other_.under(v) != kNone && stands_behind(v, host)) return false;
      for (ValueId v : op(i).out) {
        if (pinned_[at(v)]) return false;
        if (is_read_outside(v, group)) bytes += p_.type(v).bytes();
      }
    }
    return bytes <= kSmall;
  }

  // Whether a reshape stands behind the group and shows something else than what that makes.
  bool stands_behind(ValueId v, size_t group) const {
    const OpId maker = p_.value(other_.root(v)).producer;
    return at(p_.value(v).producer) > group && (maker == kNone || group_[at(maker)] != group);
  }

  bool all_may_have(size_t group, const Dims& dims) const {
    const std::vector<size_t>& all = members_[group];
    return std::all_of(all.begin(), all.end(),
                       [&](size_t i) { return other_.may_have(op(i), dims); });
  }

  // The dims that the group can have with op i: its own, or those of the op; null if neither.
  const Dims* dims_with(size_t i, size_t host) const {
    const Dims& own = dims_[host];
    if (other_.may_have(op(i), own)) return &own;
    return all_may_have(host, dims(i)) ? &dims(i) : nullptr;
  }

  static bool are_pointwise(const Op& a, const Op& b) {
    return b.kind == "pointwise" && per_sample(a) == per_sample(b);
  }

  bool is_read_by_groups_alone(size_t i) const {
    bool read = false;
    for (ValueId v : op(i).out) {
      if (pinned_[at(v)] || kept_[at(v)]) return false;
      for (size_t user : users_[at(v)]) {
        if (!are_pointwise(op(i), op(user))) return false;
        read = true;
      }
    }
    return read;
  }

  // A constant that something else reads, too, has dims of its own.
  bool fits(size_t producer, size_t user) const {
    return are_pointwise(op(producer), op(user)) &&
           p_.type(op(producer).out[0]).elements() == p_.type(op(user).out[0]).elements() &&
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
    const std::vector<std::vector<size_t>> views = take_views();
    for (size_t i = 0; i < group_.size(); ++i) {
      if (op(i).kind == "pointwise") {
        if (group_[i] == i && !inlined_[i]) merge(i);
      } else if (op(i).kind != "reshape") {
        ops_.push_back(
            std::move(p_.mutable_ops()[i]));  // pointwise ops and reshapes are still read
      }
      for (size_t view : views[i]) ops_.push_back(op(view));
    }
    p_.mutable_ops().clear();
    for (Op& op : ops_) p_.append(std::move(op));
  }

  // By op: the reshapes that stand there. Those of what a group makes follow the group, if others
  // read them; all others stay where they are.
  std::vector<std::vector<size_t>> take_views() const {
    std::vector<std::vector<size_t>> views(group_.size());
    for (size_t i = 0; i < group_.size(); ++i) {
      if (op(i).kind != "reshape") continue;
      const OpId maker = p_.value(other_.root(op(i).out[0])).producer;
      size_t place = i;
      if (maker != kNone && op(at(maker)).kind == "pointwise") {
        if (inlined_[at(maker)] || !is_read_outside(op(i).out[0], group_[at(maker)])) continue;
        place = std::max(i, group_[at(maker)]);
      }
      views[place].push_back(i);
    }
    return views;
  }

  // Whether others than the members of the group read v, or reshapes of it.
  bool is_read_outside(ValueId v, size_t group) const {
    const auto& all = users_[at(v)];
    return pinned_[at(v)] || kept_[at(v)] ||
           std::any_of(all.begin(), all.end(), [&](size_t user) { return group_[user] != group; });
  }

  // Makes one op of the group, with the reshapes between its dims and those of its members.
  void merge(size_t group) {
    std::vector<size_t>& members = members_[group];
    std::sort(members.begin(), members.end());
    Op& last = p_.mutable_ops()[group];
    Op fused;
    fused.kind = last.kind, fused.attrs = std::move(last.attrs), fused.phase = last.phase;
    fused.site = last.site, fused.twin = last.twin, fused.stage = last.stage;
    fused.attrs.set("dims", dims_[group]);
    for (size_t i : members) emit(op(i), fused);
    std::vector<Op> behind;
    for (size_t i : members)
      for (ValueId v : op(i).out) {
        if (i != group && !is_read_outside(v, group)) continue;
        fused.expr.outputs.push_back(registers_[at(v)]);
        fused.out.push_back(dims(i) == dims_[group] ? v : twin_of(v, dims_[group]));
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
  void emit(const Op& op, Op& fused) {
    boost::container::small_vector<int32_t, 8> local(op.expr.instrs.size());
    for (size_t k = 0; k < local.size(); ++k) {
      orr_instr i = op.expr.instrs[k];
      if (i.fn == ORR_FN_INPUT) {
        local[k] = operand(op.in[static_cast<size_t>(i.a)], op, fused);
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
  int32_t operand(ValueId v, const Op& member, Op& fused) {
    const ValueId root = other_.root(v);
    const OpId producer = p_.value(root).producer;
    if (producer != kNone && inlined_[at(producer)] && registers_[at(root)] == kNone)
      emit(op(at(producer)), fused);
    const bool whole = p_.type(v).elements() == p_.type(member.out[0]).elements();
    if (registers_[at(root)] != kNone && (whole || inlined_[at(producer)]))
      return registers_[at(root)];
    v = as_seen(v, member, fused);
    if (registers_[at(v)] != kNone) return registers_[at(v)];
    fused.in.push_back(v);
    orr_instr read{
        ORR_FN_INPUT, p_.type(v).dtype, static_cast<int32_t>(fused.in.size()) - 1, -1, -1, 0, 0};
    fused.expr.instrs.push_back(read);
    return load(v, static_cast<int32_t>(fused.expr.instrs.size()) - 1);
  }

  // A member's input as one of the fused op.
  ValueId as_seen(ValueId v, const Op& member, const Op& fused) {
    const Dims& own = p_.type(member.out[0]).dims;
    const Dims to = attr_ints(fused.attrs, "dims");
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

  LocalProgram& local_;
  Program& p_;
  std::vector<size_t> group_;
  std::vector<Size> size_;                                        // by group
  std::vector<std::vector<size_t>> members_;                      // by group
  std::vector<Dims> dims_;                                        // by group
  std::vector<boost::container::small_vector<size_t, 2>> users_;  // by value
  std::vector<char> pinned_;                                      // by value: read from outside
  std::vector<char> kept_;        // by value: a reshape of it is read from outside
  std::vector<char> is_whole_;    // by value: an exchange completes it (Total)
  const std::vector<bool> once_;  // by op (once_a_step)
  OtherDims other_;
  std::vector<char> inlined_;       // by op
  std::vector<int32_t> registers_;  // of the group being merged, by value; kNone: in none yet
  std::vector<ValueId> loaded_;     // the values that have a register
  std::map<std::pair<ValueId, Dims>, ValueId> seen_;  // inputs of it in other dims
  std::vector<Op> ops_;                               // of the fused program
};

}  // namespace

void fuse_pointwise(LocalProgram& local) { Fuser(local).run(); }

}  // namespace orrery
