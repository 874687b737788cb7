// SPDX-License-Identifier: Apache-2.0
//
// Random numbers are keyed by the element's index in the whole tensor (docs/design.md, "A
// program"): a rank's op begins at the index of the first element of its samples.
#pragma once

#include <map>
#include <utility>

#include "partition/localize.h"

namespace orrery {

class RandomKeys {
 public:
  // For ops of `from` that run on these microbatches and are appended to `to`. Borrows both.
  RandomKeys(const Program& from, const Microbatches& microbatches, Program& to)
      : from_(from), microbatches_(microbatches), to_(to) {}

  // Makes `copy`, the rank's copy of an op of samples, draw the numbers of this rank's samples.
  void set(const Op& op, Op& copy);
  // The index in the whole tensor of the first element that a call computes, as an i64 scalar.
  ValueId first_element(int64_t per_row, const Op& op);

 private:
  int64_t numbers_per_row(const Value& out, const Op& op) const;
  int64_t elements_per_row(const Value& v, const Op& op) const;
  void key_random(Op& copy, orr_instr& base, const Value& out, const Op& op);

  const Program& from_;
  Microbatches microbatches_;
  Program& to_;
  std::map<std::pair<int, int64_t>, ValueId> first_elements_;  // by stage and elements per row
};

}  // namespace orrery
