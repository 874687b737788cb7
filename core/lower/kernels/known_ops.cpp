// SPDX-License-Identifier: Apache-2.0
//
// Writes ops of plugins in known ops where no kernel takes them, if the plugin says how (op.h,
// `kernel` = 2).
#include <algorithm>
#include <map>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"
#include "program/custom_kind.h"

namespace orrery {
namespace {

class KnownOps {
 public:
  KnownOps(LocalProgram& local, const std::vector<std::string>& kernels)
      : p_(local.program), kernels_(kernels) {}

  void run() {
    std::vector<Op> ops;
    std::swap(ops, p_.mutable_ops());
    for (Op& op : ops) {
      const CustomKind* kind = find_custom(op.kind);
      if (kind && kind->in_known_ops && !is_taken(op))
        write(*kind, op);
      else
        p_.append(std::move(op));
    }
  }

 private:
  bool is_taken(const Op& op) const {
    std::vector<Strided> in, out;
    for (ValueId v : op.in) in.push_back(Strided::contiguous(p_.type(v)));
    for (ValueId v : op.out) out.push_back(Strided::contiguous(p_.type(v)));
    Launch launch;
    return score_as_it_is(kernels_, op, in, out, launch) > 0;
  }

  // The plugin writes into a program of this op alone, whose ops are then copied.
  void write(const CustomKind& kind, const Op& op) {
    Program alone;
    alone.set_site(op.site), alone.set_phase(op.phase);
    std::map<ValueId, ValueId> here;
    Op same = op;
    for (size_t i = 0; i < op.in.size(); ++i) {
      same.in[i] = alone.input(std::to_string(i), p_.type(op.in[i]));
      here[same.in[i]] = op.in[i];
    }
    const std::vector<ValueId> made = kind.in_known_ops(alone, same);
    for (const Op& each : alone.ops()) copy(alone, each, op, here);
    for (size_t j = 0; j < made.size(); ++j) show(here.at(made[j]), op, j);
  }

  void copy(const Program& from, Op each, const Op& of, std::map<ValueId, ValueId>& here) {
    for (ValueId& v : each.in) v = here.at(v);
    if (each.kind == "stop_gradient" || each.kind == "user_gradient") {
      here[each.out[0]] = each.in[0];
      return;
    }
    for (ValueId& v : each.out) {
      const ValueId made = p_.new_value(from.type(v), Role::activation);
      p_.mutable_value(made).layout = p_.value(of.out[0]).layout;
      here[v] = made, v = made;
    }
    each.stage = of.stage, each.twin = of.twin;
    p_.append(std::move(each));
  }

  // What reads result j of the op reads v.
  void show(ValueId v, const Op& op, size_t j) {
    Op shown;
    shown.kind = "reshape", shown.in = {v}, shown.out = {op.out[j]};
    shown.attrs = {{"dims", p_.type(v).dims}};
    shown.phase = op.phase, shown.site = op.site, shown.stage = op.stage, shown.twin = op.twin;
    p_.append(std::move(shown));
  }

  Program& p_;
  KernelChoice kernels_;
};

}  // namespace

void write_in_known_ops(LocalProgram& local, const std::vector<std::string>& kernels) {
  const auto& ops = local.program.ops();
  if (std::any_of(ops.begin(), ops.end(), [](const Op& op) { return find_custom(op.kind); }))
    KnownOps(local, kernels).run();
}

}  // namespace orrery
