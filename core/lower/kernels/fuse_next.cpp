// SPDX-License-Identifier: Apache-2.0
//
// Makes one op (ops.h, pointwise_next) of a pointwise op and a norm of its result, or the sum over
// that one's rows, in the place of the former, if a kernel takes it: such a kernel does not read
// again what it has just written. So are a residual and the norm behind it, and an activation's
// gradient and that of the bias. Runs last: other passes know pointwise ops better.
#include <algorithm>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

class NextFuser {
 public:
  NextFuser(Program& p, const std::vector<std::string>& kernels)
      : p_(p), kernels_(kernels), gone_(p.ops().size()) {}

  void run() {
    for (size_t j = 0; j < p_.ops().size(); ++j)
      if (const size_t i = maker_of(j); i != SIZE_MAX) join(i, j);
    remove_ops(p_, gone_);
  }

 private:
  // Whether it is a norm, or a sum of vectors of more than one element, whose order is another.
  bool reads_rows(const Op& op) const {
    if (op.kind != "reduce") return op.kind == "layernorm" || op.kind == "rmsnorm";
    const Dims& dims = p_.type(op.in[0]).dims;
    return attr_text(op.attrs, "fn", "") == "sum" && attr_int(op.attrs, "begin", 0) == 0 &&
           attr_int(op.attrs, "end", 0) + 1 == static_cast<int64_t>(dims.size()) && dims.back() > 1;
  }

  // The pointwise op that op j can be joined to, as all else that it reads is known there; or
  // SIZE_MAX. An update is left alone: it replaces states where it is elementwise.
  size_t maker_of(size_t j) const {
    const Op& op = p_.ops()[j];
    if (op.phase == Phase::update || !reads_rows(op)) return SIZE_MAX;
    const OpId maker = p_.value(op.in[0]).producer;
    if (maker == kNone) return SIZE_MAX;
    const Op& first = p_.ops()[static_cast<size_t>(maker)];
    const bool fits = first.kind == "pointwise" && first.phase == op.phase &&
                      first.stage == op.stage && p_.value(op.in[0]).batch() != Batch::partial &&
                      std::all_of(op.in.begin() + 1, op.in.end(),
                                  [&](ValueId v) { return p_.value(v).producer < maker; });
    return fits ? static_cast<size_t>(maker) : SIZE_MAX;
  }

  void join(size_t i, size_t j) {
    const Op &first = p_.ops()[i], &next = p_.ops()[j];
    Op both = first;
    both.kind = "pointwise_next", both.attrs.set("next", next.kind);
    for (auto& [name, value] : next.attrs)
      if (!both.attrs.has(name.str())) both.attrs.set(name, value);
    const auto read = std::find(both.out.begin(), both.out.end(), next.in[0]) - both.out.begin();
    std::swap(both.out[0], both.out[static_cast<size_t>(read)]);
    std::swap(both.expr.outputs[0], both.expr.outputs[static_cast<size_t>(read)]);
    both.in.insert(both.in.end(), next.in.begin() + 1, next.in.end());
    both.out.insert(both.out.end(), next.out.begin(), next.out.end());
    if (!taken_as_joined(kernels_, p_, both, {&first, &next})) return;
    gone_[j] = true;
    p_.mutable_ops()[i] = std::move(both);
  }

  Program& p_;
  KernelChoice kernels_;
  std::vector<char> gone_;  // by op: it became part of another
};

}  // namespace

void fuse_next(LocalProgram& local, const std::vector<std::string>& kernels) {
  if (!local.microbatches.one_by_one) NextFuser(local.program, kernels).run();
}

}  // namespace orrery
