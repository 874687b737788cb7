// SPDX-License-Identifier: Apache-2.0
//
// Makes one op (ops.h, cross_entropy with dloss) of a loss and its gradient, in the place of the
// latter, if a kernel takes it: such a kernel reads the logits once, and the gradient lies where
// they were. What reads the loss in between moves behind it; the gradient must not depend on that.
#include <algorithm>
#include <map>
#include <set>

#include "lower/kernels/joined_ops.h"
#include "lower/lower.h"

namespace orrery {
namespace {

class LossJoiner {
 public:
  LossJoiner(LocalProgram& local, const std::vector<std::string>& kernels)
      : p_(local.program), kernels_(kernels) {
    for (const Total& t : local.totals) {
      partial_of_[t.whole] = t.partial;
      if (t.early != kNone) early_.insert(t.partial);
    }
  }

  void run() {
    for (size_t i = 0; i < p_.ops().size(); ++i)
      if (p_.ops()[i].kind == "cross_entropy")
        if (const size_t grad = gradient_of(i); grad != SIZE_MAX) join(i, grad);
  }

 private:
  size_t gradient_of(size_t i) const {
    const Op& loss = p_.ops()[i];
    const std::vector<ValueId> read = {loss.in[0], loss.in[1], loss.in[2], loss.out[1]};
    for (size_t j = i + 1; j < p_.ops().size(); ++j) {
      const Op& op = p_.ops()[j];
      if (op.kind == "cross_entropy_grad" && op.stage == loss.stage &&
          std::vector<ValueId>(op.in.begin() + 1, op.in.end()) == read)
        return j;
    }
    return SIZE_MAX;
  }

  // The op that makes v, or the sum over the batch whose total v is.
  OpId maker_of(ValueId v) const {
    const auto total = partial_of_.find(v);
    return p_.value(total == partial_of_.end() ? v : total->second).producer;
  }

  // Of the ops between i and j: whether they depend on op i.
  std::vector<char> dependents(size_t i, size_t j) const {
    std::vector<char> found(p_.ops().size());
    found[i] = true;
    for (size_t k = i + 1; k <= j; ++k)
      for (ValueId v : p_.ops()[k].in)
        if (const OpId maker = maker_of(v); maker != kNone)
          found[k] = found[k] || found[static_cast<size_t>(maker)];
    return found;
  }

  // Whether ranks complete a result together with others that ops of samples read.
  bool makes_early_sum(const Op& op) const {
    return std::any_of(op.out.begin(), op.out.end(),
                       [&](ValueId v) { return early_.count(v) > 0; });
  }

  void join(size_t i, size_t j) {
    const Op &loss = p_.ops()[i], &grad = p_.ops()[j];
    // In the update, samples could not read the loss any more.
    if (loss.phase != grad.phase && grad.phase == Phase::update) return;
    const std::vector<char> later = dependents(i, j);
    const OpId dloss = maker_of(grad.in[0]);
    if (dloss != kNone && later[static_cast<size_t>(dloss)]) return;
    for (size_t k = i; k < j; ++k)
      if (later[k] && makes_early_sum(p_.ops()[k])) return;
    Op both = loss;
    both.in.push_back(grad.in[0]), both.out.push_back(grad.out[0]), both.phase = grad.phase;
    if (!taken_as_joined(kernels_, p_, both, {&loss, &grad})) return;
    std::vector<Op> ops;
    std::swap(ops, p_.mutable_ops());
    const auto move = [&](size_t from, size_t to, bool which) {
      for (size_t k = from; k < to; ++k)
        if (static_cast<bool>(later[k]) == which) p_.append(std::move(ops[k]));
    };
    move(0, j, false);
    p_.append(std::move(both));
    move(i + 1, j, true);
    move(j + 1, ops.size(), false);
  }

  Program& p_;
  KernelChoice kernels_;
  std::map<ValueId, ValueId> partial_of_;  // by total
  std::set<ValueId> early_;                // partials
};

}  // namespace

void join_losses(LocalProgram& local, const std::vector<std::string>& kernels) {
  if (!local.microbatches.one_by_one) LossJoiner(local, kernels).run();
}

}  // namespace orrery
