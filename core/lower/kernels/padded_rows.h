// SPDX-License-Identifier: Apache-2.0
//
// Pads the rows of logits and of their gradient, so that each begins where products load fast
// (orr_device_facts.row_alignment). A vocabulary of 50,257 is odd: without this, three large
// products would load element by element. The padding belongs to the tensor, and nobody reads it: a
// product may write there (ops.h, matmul).
//
// Only these values, and what a product has made before a bias was added: a loss lies in the stage
// that makes its logits, and a module in one stage, so they have the same layout on any ranks, and
// with it products the same algorithm and bits.
#pragma once

#include <set>
#include <vector>

#include "lower/kernel_choice.h"
#include "lower/rank_plan.h"

namespace orrery {

class PaddedRows {
 public:
  // `readers`: by value, the ops that read it. Both must outlive this object.
  PaddedRows(const RankPlan& plan, const std::vector<std::vector<size_t>>& readers);

  // The layout of v, which `maker` makes: with padded rows if the kernels of its maker and of all
  // its readers take them, else contiguous.
  Strided layout_of(ValueId v, const Op& maker) const;

 private:
  bool pay_for(const Type& type) const;
  bool takes(const Op& op, const std::vector<ValueId>& wide, const Strided& layout) const;
  bool readers_take(ValueId v, const Strided& layout, const Op& maker, bool& in_loss) const;
  bool reader_takes(const Op& op, ValueId v, const Strided& layout, bool& in_loss) const;

  const RankPlan& plan_;
  const std::vector<std::vector<size_t>>& readers_;
  KernelChoice kernels_;
  std::set<ValueId> dense_;  // values that others than ops read
};

// From the first element to the end of the last row, with its padding.
uint64_t bytes_of(const Strided& x);

}  // namespace orrery
