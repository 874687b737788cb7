// SPDX-License-Identifier: Apache-2.0
//
// For tests of lowering: which kinds of ops a program's launches are, and whether its bits are
// those of the program whose ops were not joined.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "machine.h"
#include "program/op_group.h"

namespace program_test {

using Kinds = std::vector<std::string>;

inline Kinds kinds(const orrery::Program& p, const Kinds& kernels = {"reference"},
                   const orrery::Microbatches& microbatches = {}) {
  Kinds found;
  Machine machine(p, kernels, microbatches);
  for (const orrery::Step& s : machine.plan().schedule)
    found.push_back(shown_kind(machine.plan().launches[static_cast<size_t>(s.index)].op));
  return found;
}

inline int64_t count(const Kinds& all, const std::string& kind) {
  return std::count(all.begin(), all.end(), kind);
}

inline void expect_equal_bits(const orrery::Program& p,
                              const orrery::Microbatches& microbatches = {}) {
  Named inputs;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const orrery::Value& v : p.values())
    if (v.producer == orrery::kNone && orrery::is_real(v.type.dtype))
      for (int64_t n = v.type.elements(); n > 0; --n) inputs[v.name].push_back(normal(random));
  EXPECT_EQ(Machine(p, {"reference"}, microbatches, true).run(inputs),
            Machine(p, {"reference"}, microbatches, false).run(inputs));
}

}  // namespace program_test
