// SPDX-License-Identifier: Apache-2.0
//
// Ops of a step that lowering makes one, and casts that it moves: which are, and that no bit
// changes.
#include <gtest/gtest.h>

#include <algorithm>

#include "machine.h"
#include "program/build.h"
#include "program/state.h"
#include "run/run.h"

namespace program_test {
namespace {

using namespace orrery;
using Kinds = std::vector<std::string>;
using Ids = std::vector<ValueId>;

Kinds kinds(const Program& p, const Kinds& kernels = {"reference"},
            const Microbatches& microbatches = {}) {
  Kinds found;
  Machine machine(p, kernels, microbatches);
  for (const Step& s : machine.plan().schedule)
    found.push_back(machine.plan().launches[static_cast<size_t>(s.index)].op.kind);
  return found;
}

int64_t count(const Kinds& all, const std::string& kind) {
  return std::count(all.begin(), all.end(), kind);
}

TEST(FirstCasts, AreMadeOnceForAllReaders) {
  auto state = std::make_shared<State>();
  state->name = "w", state->type = {ORR_F32, {5, 4}};
  state->initial = Initial::of_data(HostTensor::make(state->type));
  Program p;
  const ValueId w = p.state_value(state), x = p.input("x", {ORR_F64, {6, 5}});
  const ValueId y = build::matmul(p, x, p.cast(w, ORR_F64));
  give(p, "z", build::matmul(p, y, p.cast(w, ORR_F64), false, true));
  EXPECT_EQ(count(kinds(p), "matmul"), 2);
  EXPECT_EQ(kinds(p)[1], "matmul");  // the second cast stands behind it: nothing is updated
  p.set_phase(Phase::update);
  p.update(w, p.pointwise(ORR_FN_MUL, {w, Operand::number(2)}));
  const Kinds found = kinds(p);
  EXPECT_EQ(Kinds(found.begin(), found.begin() + 3), (Kinds{"pointwise", "matmul", "matmul"}));
}

}  // namespace
}  // namespace program_test
