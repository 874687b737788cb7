// SPDX-License-Identifier: Apache-2.0
//
// A loss as a function of sums over the batch (docs/design.md, "Derivatives and the update"). Where
// it is linear in those that depend on what is trained, their gradients are added up as they are
// and divided once, at the end of backward, by one weight. A sum that the loss divides by something
// else begins backward with the ratio of the weight to it.
#pragma once

#include <string>
#include <vector>

#include "program/program.h"
#include "program/whole_fields.h"

namespace orrery {

// What depends on the trained parameters. By value: those that were added to the program after the
// lists were made do not.
struct Dependence {
  std::vector<char> depends;
  // It depends on them by way of a completed sum over the batch (Program::completed) or of gathered
  // rows, and is itself one value for all samples: it is made of the whole batch.
  std::vector<char> whole_batch;
};

class LossTerms {
 public:
  LossTerms(Program& p, ValueId loss, const Dependence& on);

  // Where the loss is not linear in its sums: "train.lua:12: 'sqrt' makes a nonlinear function of
  // sums over the batch here"; "": it is.
  const std::string& why_not_linear() const { return why_; }

  // 0-d, a sum over the batch; kNone: gradients of sums are those of the loss, undivided.
  ValueId weight() const { return weight_; }

  // Whether the op divides a sum that depends on the trained parameters by a value that does not,
  // as batch_mean does.
  bool is_quotient(const Op& op) const;

  // The cotangent of the sum that the quotient divides, given that of the quotient.
  ValueId of_divided(const Op& quotient, ValueId dy);
  // The cotangent of a sum that the loss does not divide, given the loss's derivative by it.
  ValueId of_sum(ValueId dx);

 private:
  bool depends(ValueId v) const { return is_set(on_.depends, v); }
  bool is_of_whole_batch(ValueId v) const { return is_set(on_.whole_batch, v); }
  static bool is_set(const std::vector<char>& list, ValueId v) {
    return static_cast<size_t>(v) < list.size() && list[static_cast<size_t>(v)];
  }
  const Op* maker_of(ValueId v) const;
  std::string check(ValueId v) const;
  std::string check(const Op& op) const;
  ValueId find_weight(ValueId loss) const;
  ValueId early(ValueId v);

  Program& p_;
  const Dependence& on_;
  WholeFields fields_;
  ValueId weight_ = kNone;
  std::string why_;
};

// The loss as a function of complete sums over the batch, which all ranks have before backward
// begins, so that it may be any function. Sums of batch fields alone are those of WholeFields; the
// others are complete before the first op that reads one of them, so that one exchange adds them
// all.
ValueId of_complete_sums(Program& p, ValueId loss);

}  // namespace orrery
