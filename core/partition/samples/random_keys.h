// SPDX-License-Identifier: Apache-2.0
//
// Random numbers are keyed by the element's index in the whole tensor (docs/design.md, "A
// program"): what a rank's op draws for its samples begins at the first of them.
#pragma once

#include <map>
#include <utility>

#include "partition/localize.h"

namespace orrery {

class RandomKeys {
 public:
  // Ops of the program `from` on these microbatches, as they are appended to `to`. Borrows both.
  RandomKeys(const Program& from, const Microbatches& microbatches, Program& to)
      : from_(from), microbatches_(microbatches), to_(to) {}

  // Has `copy` of an op of samples draw the numbers of this rank's.
  void set(const Op& op, Op& copy);
  // The global index of the first element that a call computes, as an i64 scalar.
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
