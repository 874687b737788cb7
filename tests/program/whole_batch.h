// SPDX-License-Identifier: Apache-2.0
//
// A program that the tests of whole batches build and run side by side on 1 to 4 ranks.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "program/build.h"
#include "program/state.h"
#include "program/train.h"
#include "side_by_side.h"
#include "stack.h"

namespace program_test {

using namespace orrery;

inline Values floats(const Bytes& b) {
  Values v(b.size() / 4);
  for (size_t i = 0; i < v.size(); ++i) {
    float x;
    std::memcpy(&x, &b[4 * i], 4);
    v[i] = x;
  }
  return v;
}

class WholeBatch : public ::testing::Test {
 protected:
  WholeBatch() { p.set_site({"net", "model.lua:3"}); }

  ValueId state(const std::string& name, const Dims& dims, double value, Role role = Role::state) {
    auto s = std::make_shared<State>();
    s->name = name, s->type = {ORR_F32, dims}, s->role = role;
    HostTensor t = HostTensor::make(s->type);
    std::fill_n(t.data<float>(), t.type.elements(), static_cast<float>(value));
    s->initial = Initial::of_data(t);
    if (role == Role::param) params.push_back(s);
    return p.state_value(s);
  }
  ValueId times(ValueId v, double by) { return p.pointwise(ORR_FN_MUL, {v, Operand::number(by)}); }
  ValueId plus(ValueId a, Operand b) { return p.pointwise(ORR_FN_ADD, {a, b}); }
  ValueId sum(ValueId v, Dims dims = {}) {
    return build::reduce(p, "sum", v, std::move(dims), false);
  }
  ValueId mean(ValueId v, Dims dims = {}) { return build::mean(p, v, std::move(dims), false); }

  // 0, 1, 2, ... over a batch of [rows, width].
  ValueId counting(int64_t rows, int64_t width) {
    Values v(static_cast<size_t>(rows * width));
    std::iota(v.begin(), v.end(), 0);
    fields["x"] = v;
    return p.batch_input("x", {ORR_F32, {rows, width}});
  }

  // Descends with rate 1: a parameter's change is its gradient.
  void train(ValueId loss) {
    TrainParts parts;
    parts.update = [](Program& q, const std::shared_ptr<State>&, ValueId value, ValueId gradient) {
      return q.pointwise(ORR_FN_SUB, {value, gradient});
    };
    build_training(p, loss, params, parts);
  }

  // A state after a step; the same on any number of ranks for equal microbatches.
  Values after(const std::string& name, int64_t microbatches,
               const std::vector<StrategyUse>& stack = {shared_batch("model.lua:9")}) {
    Bytes first;
    for (int ranks = 1; ranks <= std::min<int64_t>(4, microbatches); ++ranks) {
      Program q = p;
      Mesh mesh = applied(q, stack, ranks);
      SideBySide all(q, mesh, microbatches, {"cpu", "reference"});
      all.step(fields, {{"$seed", {1}}, {"$step", {1}}});
      const Bytes now = all.state(name);
      if (ranks == 1) first = now;
      EXPECT_EQ(now, first) << ranks << " ranks, " << microbatches << " microbatches";
    }
    return floats(first);
  }

  static void near(const Values& got, const Values& want) {
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  }

  Program p;
  std::vector<std::shared_ptr<State>> params;
  Named fields;
};

}  // namespace program_test
