// SPDX-License-Identifier: Apache-2.0
//
// Seeded programs of pointwise ops, views and state updates, for comparing ways to lower them.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "machine.h"
#include "program/state.h"

namespace program_test {

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed);

  const Program& program() const { return p_; }
  // Outputs and the states after one step; the states begin alike each time.
  Named run(const std::string& kernels, bool fuse);

 private:
  size_t pick(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  Values fill(int64_t n);
  ValueId any() { return values_[pick(values_.size())]; }
  ValueId next_value();
  ValueId view();
  void declare_inputs();
  void declare_results();

  std::mt19937 random_;
  Program p_;
  std::vector<ValueId> values_;  // reals
  std::vector<std::shared_ptr<orrery::State>> states_;
  Named inputs_;
  std::vector<Values> first_;  // of each state
};

}  // namespace program_test
