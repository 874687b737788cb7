// SPDX-License-Identifier: Apache-2.0
//
// Writes ops that no kernel takes in ops that are known: ops of plugins, if the plugin says how
// (op.h, `kernel` = 2), and attention of grouped heads or with a window, where kernels take it
// sooner with all heads of keys, or with a bias.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"
#include "program/custom_kind.h"
#include "program/plain_attention.h"

namespace orrery {
namespace {

bool is_attention(const Op& op) { return op.kind == "attention" || op.kind == "attention_grad"; }

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
        write(op, kind->in_known_ops);
      else if (const Write plainer = kind ? nullptr : plainer_attention(op))
        write(op, plainer);
      else
        p_.append(std::move(op));
    }
  }

 private:
  // Adds ops to a program that stand for one, and returns their results.
  using Write = std::function<std::vector<ValueId>(Program&, const Op&)>;

  bool is_taken(const Op& op) const {
    std::vector<Strided> in, out;
    for (ValueId v : op.in) in.push_back(Strided::contiguous(p_.type(v)));
    for (ValueId v : op.out) out.push_back(Strided::contiguous(p_.type(v)));
    Launch launch;
    return score_as_it_is(kernels_, op, in, out, launch) > 0;
  }

  // How attention is written that no kernel takes with as high a score as without its groups of
  // heads or its window; null: a kernel does.
  Write plainer_attention(const Op& op) const {
    const bool grouped = op.attrs.has("kv_heads"), windowed = op.attrs.has("window");
    if (!is_attention(op) || (!grouped && !windowed)) return nullptr;
    const auto without = [](bool heads, bool window) -> Write {
      return [=](Program& p, const Op& x) { return plain_attention(p, x, heads, window); };
    };
    const auto score = [&](const Write& write) {
      Alone alone(p_, op, write);
      for (const Op& each : alone.program.ops())
        if (each.kind == op.kind) return score_of(kernels_, alone.program, each);
      return 0;
    };
    const int32_t plain = score(without(grouped, windowed));
    for (const auto& [heads, window] : {std::pair{false, false}, {false, true}, {true, false}})
      if ((!heads || grouped) && (!window || windowed))
        if (const Write write = without(heads, window); score(write) >= std::max(plain, 1))
          return heads || window ? write : nullptr;
    return without(grouped, windowed);
  }

  // A program of this op alone, and in it what stands for the op.
  struct Alone {
    Alone(const Program& p, const Op& op, const Write& write) {
      program.set_site(op.site), program.set_phase(op.phase);
      Op same = op;
      for (size_t i = 0; i < op.in.size(); ++i) {
        same.in[i] = program.input(std::to_string(i), p.type(op.in[i]));
        here[same.in[i]] = op.in[i];
      }
      made = write(program, same);
    }
    Program program;
    std::map<ValueId, ValueId> here;  // its values in the whole program
    std::vector<ValueId> made;
  };

  void write(const Op& op, const Write& write) {
    Alone alone(p_, op, write);
    for (const Op& each : alone.program.ops()) copy(alone.program, each, op, alone.here);
    for (size_t j = 0; j < alone.made.size(); ++j) show(alone.here.at(alone.made[j]), op, j);
  }

  // What depends on none of the op's inputs is one value for all samples.
  void copy(const Program& from, Op each, const Op& of, std::map<ValueId, ValueId>& here) {
    const bool for_all = std::all_of(each.in.begin(), each.in.end(),
                                     [&](ValueId v) { return for_all_.count(here.at(v)) > 0; });
    for (ValueId& v : each.in) v = here.at(v);
    if (each.kind == "stop_gradient" || each.kind == "user_gradient") {
      here[each.out[0]] = each.in[0];
      return;
    }
    for (ValueId& v : each.out) {
      const ValueId made = p_.new_value(from.type(v), Role::activation);
      if (for_all) for_all_.insert(made);
      if (!for_all) p_.mutable_value(made).layout = p_.value(of.out[0]).layout;
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
  std::set<ValueId> for_all_;  // made values that depend on no input
};

}  // namespace

void write_in_known_ops(LocalProgram& local, const std::vector<std::string>& kernels) {
  const auto& ops = local.program.ops();
  const auto may_be_written = [](const Op& op) {
    return find_custom(op.kind) || op.attrs.has("kv_heads") || op.attrs.has("window");
  };
  if (std::any_of(ops.begin(), ops.end(), may_be_written)) KnownOps(local, kernels).run();
}

}  // namespace orrery
