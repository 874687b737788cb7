// SPDX-License-Identifier: Apache-2.0
//
// A walk over the ops of forward, from the last to the first, that appends their gradients
// (program/autodiff.cpp has an example, and is its only user).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "program/loss_terms.h"
#include "program/op.h"
#include "program/program.h"

namespace orrery {

// Which terms of a loss a pass differentiates.
// all: everything, as it is written.
// sums: the sums over the batch that the loss is linear in, and their quotients (LossTerms).
// whole_batch: terms of values that samples make together, by a sum over the batch that is
//   completed first (Program::completed) or by gathered rows.
// others: the terms left over, such as a penalty; terms of the passes before are constants here.
enum class Pass { all, sums, whole_batch, others };

// By value: whether it is one of `wrt` or depends on one, through the ops from `first` on.
std::vector<char> dependents(const Program& p, const std::vector<ValueId>& wrt, size_t first);
// The same with what else Dependence (loss_terms.h) says.
Dependence dependence(const Program& p, const std::vector<ValueId>& wrt, size_t first = 0);

// A value that several ops use gets a cotangent from each. They are added, but those of the values
// `wrt` are kept one for each use, because each of them is summed over the batch on its own.
class BackwardPass : public Gradient {
 public:
  // `first`: the op that forward begins with. REQUIRES: program and `on` outlive this.
  BackwardPass(Program& p, const std::vector<ValueId>& wrt, const Dependence& on, size_t first = 0);

  // Whether the loss has terms for Pass::whole_batch.
  bool has_whole_batch_term(ValueId loss) const;
  // Walks over the first `n_ops` ops. `terms`: those of the loss, for all passes but Pass::all.
  void run(size_t n_ops, Pass pass, LossTerms* terms = nullptr);
  // Marks a sum over the batch that no batch_mean divides.
  void mark_undivided(ValueId sum) { undivided_.insert(sum); }
  // The cotangents of x, one of `wrt`, in the order of its uses in forward.
  std::vector<ValueId> uses(ValueId x);

  bool wanted(ValueId x) override;
  ValueId dy(int j) override;
  void add(ValueId x, ValueId dx) override;

 private:
  void emit_gradient(OpId i);
  bool has_cotangent(const Op& op) const;
  ValueId get(ValueId v) const;
  bool counts_padding() const;
  bool is_undivided(ValueId v) const { return undivided_.count(v) > 0; }
  bool is_mean(const Op& op) const { return p.value(op.out[0]).batch() == Batch::mean; }
  bool depends(ValueId x) const;
  bool is_of_whole_batch(ValueId x) const;
  bool is_left_to_other_pass(const Op& op) const;
  bool is_made_of_wrt(ValueId x) const;
  void refuse(const Op& op) const;

  const Dependence& on_;
  LossTerms* terms_ = nullptr;
  size_t first_;
  std::set<ValueId> undivided_;  // mark_undivided
  std::map<ValueId, bool> is_wrt_;
  std::map<ValueId, ValueId> cotangent_;
  std::map<ValueId, std::vector<ValueId>> uses_;  // of `wrt`, from the last use to the first
  const Op* op_ = nullptr;                        // the one whose gradient is being appended
  Pass pass_ = Pass::all;
  bool above_sums_ = false;  // the current op lies between the loss and its sums
};

}  // namespace orrery
