// SPDX-License-Identifier: Apache-2.0
//
// An evaluation of several batches as if they were one. Its results are functions of sums over the
// batch (docs/design.md, "Derivatives and the update"). Each of these sums is kept in a state, to
// which every batch adds its own, and the results are computed of the states: after the last batch
// they are those of all samples together, whatever the sizes of the batches.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "program/program.h"

namespace orrery {

// The scalar input of such a program: 0 for the first batch, which forgets what the states hold,
// 1 for those after it.
inline constexpr const char* kContinues = "$continues";

struct OverBatches {
  // What the sums are kept in, of f64 or i64; in the order in which the results read them.
  std::vector<std::shared_ptr<State>> sums;
  // The results that are values of samples, which no state holds, and their batch dim.
  std::map<std::string, int32_t> rows;
};

// Lets the program's results, from number `first` on, be those of all batches so far. The state of
// the sum number i is sum_of(i, type).
OverBatches add_up_batches(
    Program& p, size_t first,
    const std::function<std::shared_ptr<State>(size_t i, const Type& type)>& sum_of);

// "" if the results of a batch are functions of sums over its samples and of nothing else that
// belongs to the batch; else what makes them depend on which samples meet in a batch, with its
// line: "train.lua:12: samples read others of their batch here". The results are those of one
// function, traced for batches of two sizes.
std::string why_not_of_sums(const Program& p, const std::vector<ValueId>& results,
                            const Program& of_other_size, const std::vector<ValueId>& others);

}  // namespace orrery
