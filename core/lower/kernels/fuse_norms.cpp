// SPDX-License-Identifier: Apache-2.0
//
// Makes one op (ops.h, norm_grad) of a norm's input gradient and its parameters' gradients, in the
// place of the former, if a kernel takes it: such a kernel reads the rows once. Where only a
// pointwise op that adds another gradient reads the input gradient, it becomes a part of the op,
// and so does the sum over the rows of what is stored then: a bias's gradient.
#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

class NormFuser {
 public:
  NormFuser(LocalProgram& local, const std::vector<std::string>& kernels)
      : p_(local.program),
        kernels_(kernels),
        readers_(p_.values().size()),
        pinned_(read_from_outside(local)),
        gone_(p_.ops().size()) {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      for (ValueId v : p_.ops()[i].in) readers_[at(v)].push_back(i);
  }

  void run() {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      if (const size_t params = params_of(i); params != SIZE_MAX) join(i, params);
    remove_ops(p_, gone_);
  }

 private:
  static size_t at(ValueId v) { return static_cast<size_t>(v); }

  // The later op that makes the parameters' gradients of the same rows, or SIZE_MAX.
  size_t params_of(size_t i) const {
    const Op& op = p_.ops()[i];
    if (op.kind != "layernorm_grad" && op.kind != "rmsnorm_grad") return SIZE_MAX;
    std::vector<ValueId> rows = op.in;
    rows.erase(rows.begin() + 2);  // the weight
    for (size_t j : readers_[at(op.in[1])])
      if (const Op& other = p_.ops()[j]; j > i && other.kind == "norm_param_grad" &&
                                         other.in == rows && other.stage == op.stage && !gone_[j])
        return j;
    return SIZE_MAX;
  }

  // The op that adds something to dx, and nothing else, where dx is made at op i; or SIZE_MAX.
  size_t adder_of(ValueId dx, size_t i) const {
    if (pinned_[at(dx)] || readers_[at(dx)].size() != 1) return SIZE_MAX;
    const Op &op = p_.ops()[readers_[at(dx)][0]], &maker = p_.ops()[i];
    if (op.kind != "pointwise" || op.in.size() != 2 || op.expr.instrs.size() != 3) return SIZE_MAX;
    const orr_instr& last = op.expr.instrs.back();
    if (last.fn != ORR_FN_ADD || last.a == last.b || op.out.size() != 1) return SIZE_MAX;
    const ValueId other = op.in[op.in[0] == dx];
    const OpId other_maker = p_.value(other).producer;
    const bool fits = p_.type(other) == p_.type(dx) && p_.type(op.out[0]) == p_.type(dx) &&
                      op.stage == maker.stage && op.phase == maker.phase &&
                      (other_maker == kNone || static_cast<size_t>(other_maker) < i);
    return fits ? readers_[at(dx)][0] : SIZE_MAX;
  }

  // The op that sums x over its rows, with the leaves of the parameters' gradients; or SIZE_MAX.
  size_t summer_of(ValueId x, const Op& params) const {
    for (size_t j : readers_[at(x)]) {
      const Op& op = p_.ops()[j];
      Attrs leaves = op.attrs;
      for (const char* own : {"fn", "begin", "end"}) leaves.erase(own);
      if (attr_int(params.attrs, "rms", 0)) leaves.set("rms", int64_t{1});
      if (op.kind == "reduce" && attr_text(op.attrs, "fn", "") == "sum" && !gone_[j] &&
          leaves == params.attrs && op.stage == params.stage && op.phase == params.phase &&
          attr_int(op.attrs, "begin", 0) == 0 && p_.type(op.out[0]) == p_.type(params.out[0]))
        return j;
    }
    return SIZE_MAX;
  }

  void join(size_t i, size_t params) {
    const Op &input = p_.ops()[i], &sums = p_.ops()[params];
    Op both = input;
    both.kind = "norm_grad", both.attrs = sums.attrs;
    both.out.insert(both.out.end(), sums.out.begin(), sums.out.end());
    const size_t adder = adder_of(input.out[0], i);
    if (adder != SIZE_MAX) {
      const Op& add = p_.ops()[adder];
      both.in.push_back(add.in[add.in[0] == input.out[0]]), both.out[0] = add.out[0];
    }
    const size_t summer = summer_of(both.out[0], sums);
    if (summer != SIZE_MAX) both.out.push_back(p_.ops()[summer].out[0]);
    if (!taken_as_joined(kernels_, p_, both, {&input, &sums})) return;
    for (size_t j : {params, adder, summer})
      if (j != SIZE_MAX) gone_[j] = true;
    p_.mutable_ops()[i] = std::move(both);
  }

  Program& p_;
  KernelChoice kernels_;
  std::vector<std::vector<size_t>> readers_;  // by value
  std::vector<char> pinned_;                  // by value: read from outside
  std::vector<char> gone_;                    // by op: it became part of another
};

}  // namespace

void fuse_norms(LocalProgram& local, const std::vector<std::string>& kernels) {
  if (!local.microbatches.one_by_one) NormFuser(local, kernels).run();
}

}  // namespace orrery
