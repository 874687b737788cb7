// SPDX-License-Identifier: Apache-2.0
//
// Makes one op (ops.h, reduce_each) of the sums over whole tensors of an update, such as the
// squares of all gradients, if a kernel takes it. It runs in the place of the first of them, and
// takes those whose tensors are known there.
#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

class SumJoiner {
 public:
  SumJoiner(LocalProgram& local, const std::vector<std::string>& kernels)
      : p_(local.program), kernels_(kernels), gone_(p_.ops().size()) {}

  void run() {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      if (is_sum(i)) join(i);
    remove_ops(p_, gone_);
  }

 private:
  // Whether it is a sum of all elements of a real tensor, stored in their dtype or in that of the
  // accumulator.
  bool is_sum(size_t i) const {
    const Op& op = p_.ops()[i];
    if (gone_[i] || op.kind != "reduce" || op.phase != Phase::update) return false;
    const Type &x = p_.type(op.in[0]), &y = p_.type(op.out[0]);
    return attr_text(op.attrs, "fn", "").starts_with("sum") && !op.attrs.has("leaf_n") &&
           y.dims.empty() && is_real(x.dtype) && (x.dtype == y.dtype || y.dtype == ORR_F32);
  }

  bool goes_with(size_t other, size_t first) const {
    if (!is_sum(other)) return false;
    const Op &a = p_.ops()[first], &b = p_.ops()[other];
    const OpId maker = p_.value(b.in[0]).producer;
    return p_.type(a.in[0]).dtype == p_.type(b.in[0]).dtype &&
           p_.type(a.out[0]).dtype == p_.type(b.out[0]).dtype &&
           attr_text(a.attrs, "fn", "") == attr_text(b.attrs, "fn", "") && a.stage == b.stage &&
           (maker == kNone || static_cast<size_t>(maker) < first);
  }

  void join(size_t first) {
    Op all = p_.ops()[first];
    all.kind = "reduce_each", all.attrs = {{"fn", attr_text(all.attrs, "fn", "")},
                                           {"dtype", int64_t{p_.type(all.out[0]).dtype}}};
    std::vector<size_t> others;
    for (size_t i = first + 1; i < p_.ops().size(); ++i) {
      if (!goes_with(i, first)) continue;
      others.push_back(i);
      all.in.push_back(p_.ops()[i].in[0]), all.out.push_back(p_.ops()[i].out[0]);
    }
    if (others.empty() || !taken_as_joined(kernels_, p_, all, {&p_.ops()[first]})) return;
    for (size_t i : others) gone_[i] = true;
    p_.mutable_ops()[first] = std::move(all);
  }

  Program& p_;
  KernelChoice kernels_;
  std::vector<char> gone_;  // by op: it became part of another
};

}  // namespace

void join_sums(LocalProgram& local, const std::vector<std::string>& kernels) {
  SumJoiner(local, kernels).run();
}

}  // namespace orrery
