// SPDX-License-Identifier: Apache-2.0
//
// Lowering keeps bits: fused and unfused programs agree, states change at the end only, and ranks'
// tree nodes are one tree.
#include <gtest/gtest.h>

#include <cmath>

#include "lower/kernels/other_dims.h"
#include "program/autodiff.h"
#include "program/build.h"
#include "random_program.h"
#include "run/run.h"

namespace program_test {
namespace {

using namespace orrery;

// Equal, also in NaN and in the sign of zero.
::testing::AssertionResult same(const Named& a, const Named& b) {
  for (auto& [name, values] : a) {
    const Values& other = b.at(name);
    if (values.size() != other.size())
      return ::testing::AssertionFailure() << name << ": sizes differ";
    for (size_t i = 0; i < values.size(); ++i) {
      double x = values[i], y = other[i];
      bool equal = std::isnan(x) ? std::isnan(y) : x == y && std::signbit(x) == std::signbit(y);
      if (!equal)
        return ::testing::AssertionFailure() << name << "[" << i << "]: " << x << " and " << y;
    }
  }
  return ::testing::AssertionSuccess();
}

TEST(Fusion, KeepsTheBitsOfRandomPrograms) {
  size_t fused = 0, all = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    RandomProgram random(seed);
    for (const char* kernels : {"reference", "cpu"})
      ASSERT_TRUE(same(random.run(kernels, true), random.run(kernels, false)))
          << "seed " << seed << " on " << kernels << "\n"
          << to_string(random.program());
    fused += Machine(random.program(), {"reference"}, {}, true).plan().launches.size();
    all += Machine(random.program(), {"reference"}, {}, false).plan().launches.size();
  }
  EXPECT_LT(fused, all * 2 / 3);
}

// What a group reads from memory and what it computes must fit, and not what its ops read from each
// other: a chain of 90 ops is one launch.
TEST(Fusion, CountsWhatAGroupReadsOnce) {
  for (auto [ops, launches] : {std::pair{90, 1u}, std::pair{180, 2u}}) {
    Program p;
    const ValueId x = p.input("x", {ORR_F32, {8}});
    ValueId y = p.input("y", {ORR_F32, {8}});
    for (int i = 0; i < ops; ++i) y = p.pointwise(ORR_FN_SUB, {x, y});
    give(p, "z", y);
    EXPECT_EQ(Machine(p, {"reference"}).plan().launches.size(), launches) << ops;
  }
}

// A group with other dims that reads a constant does not make it for those that are no group.
TEST(Fusion, KeepsTheDimsOfAConstant) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {3, 4}}), c = p.constant(2, ORR_F32, {1, 4});
  give(p, "y", p.pointwise(ORR_FN_MUL, {x, c}));
  give(p, "z", p.add1("softmax", {c}));
  const Machine machine(p, {"reference"});
  for (const Launch& launch : machine.plan().launches) {
    if (launch.op.kind != "pointwise") continue;
    const Dims dims = attr_ints(launch.op.attrs, "dims");
    for (const Place& out : launch.out_at) EXPECT_EQ(out.layout.dims, dims);
  }
}

TEST(Dims, AreSeenInFinerOnes) {
  const auto seen = [](const Dims& x, const Dims& from, const Dims& to) {
    return seen_in(x, from, to).value_or(Dims{-1});
  };
  EXPECT_EQ(seen({1, 1, 6}, {4, 1, 6}, {4, 6}), (Dims{1, 6}));
  EXPECT_EQ(seen({6}, {4, 6}, {1, 4, 2, 3}), (Dims{1, 1, 2, 3}));
  EXPECT_EQ(seen({4, 1}, {4, 6}, {2, 2, 6, 1}), (Dims{2, 2, 1, 1}));
  EXPECT_EQ(seen({}, {1}, {}), Dims{});
  EXPECT_EQ(seen({4, 6}, {4, 6}, {24}), Dims{-1});    // joins what may lie apart
  EXPECT_EQ(seen({4, 6}, {4, 6}, {6, 4}), Dims{-1});  // cuts the dims elsewhere
  EXPECT_EQ(seen({6}, {6}, {4, 6}), Dims{-1});        // more elements
  EXPECT_EQ(seen({4, 6}, {4, 6}, {0, 6}), Dims{-1});
}

// Launches of a program of x f32[4,6], rows f32[6] and columns f32[4,1]; z keeps its bits.
using Build = ValueId (*)(Program&, ValueId x, ValueId rows, ValueId columns);
size_t launches_of(Build build) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {4, 6}}), rows = p.input("rows", {ORR_F32, {6}});
  give(p, "z", build(p, x, rows, p.input("columns", {ORR_F32, {4, 1}})));
  Named in = {{"x", Values(24)}, {"rows", Values(6)}, {"columns", {1, -2, 3, 5}}};
  for (size_t i = 0; i < 24; ++i) in["x"][i] = 0.25 * static_cast<double>(i * i % 7) - 1;
  for (size_t i = 0; i < 6; ++i) in["rows"][i] = static_cast<double>(i) + 0.5;
  for (const char* kernels : {"reference", "cpu"})
    EXPECT_TRUE(same(Machine(p, {kernels}).run(in), Machine(p, {kernels}, {}, false).run(in)));
  return Machine(p, {"reference"}).plan().launches.size();
}

TEST(Fusion, SeesThroughReshapes) {
  EXPECT_EQ(launches_of([](Program& p, ValueId x, ValueId rows, ValueId columns) {
              const ValueId y = p.pointwise(ORR_FN_MUL, {x, rows});
              const ValueId wide = build::reshape(p, y, {1, 4, 1, 6});
              return p.pointwise(ORR_FN_ADD, {wide, build::reshape(p, columns, {4, 1, 1})});
            }),
            1u);
  EXPECT_EQ(launches_of([](Program& p, ValueId x, ValueId rows, ValueId columns) {
              const ValueId y = p.pointwise(ORR_FN_MUL, {x, columns});
              const ValueId flat = p.pointwise(ORR_FN_EXP, {build::reshape(p, y, {24})});
              return p.pointwise(ORR_FN_ADD, {build::reshape(p, flat, {4, 6}), rows});
            }),
            1u);
  EXPECT_EQ(launches_of([](Program& p, ValueId x, ValueId rows, ValueId columns) {
              const ValueId y = p.pointwise(ORR_FN_MUL, {x, columns});  // the group gets its dims
              const ValueId flat = p.pointwise(ORR_FN_EXP, {build::reshape(p, y, {24})});
              const ValueId pair = build::reshape(p, build::slice(p, rows, 0, 0, 2), {1, 2});
              return p.pointwise(ORR_FN_ADD, {build::reshape(p, flat, {24, 1}), pair});
            }),
            2u);
  EXPECT_EQ(launches_of([](Program& p, ValueId x, ValueId rows, ValueId columns) {
              const ValueId y = p.pointwise(ORR_FN_MUL, {x, rows});  // 6 and 4 have no common cut
              const ValueId other = build::reshape(p, y, {6, 4});
              return p.pointwise(ORR_FN_ADD, {other, build::reshape(p, columns, {4})});
            }),
            2u);
}

// What a reshape shows is also read as it was, and the reshape by others than the group.
TEST(Fusion, KeepsWhatOthersReadOfAReshape) {
  EXPECT_EQ(launches_of([](Program& p, ValueId x, ValueId rows, ValueId) {
              const ValueId y = p.pointwise(ORR_FN_MUL, {x, rows});
              const ValueId fine = build::reshape(p, y, {4, 2, 3});
              const ValueId z = p.pointwise(ORR_FN_MUL, {fine, fine});
              const ValueId halves = p.add1("softmax", {fine});
              return p.pointwise(ORR_FN_ADD, {p.pointwise(ORR_FN_ADD, {halves, z}), fine});
            }),
            3u);
}

// Both results of the first launch are read by softmax, in turn.
TEST(Fusion, ComputesSmallValuesBesideWhatTheyAreMadeOf) {
  EXPECT_EQ(launches_of([](Program& p, ValueId x, ValueId rows, ValueId) {
              const ValueId y = p.pointwise(ORR_FN_MUL, {x, rows});
              const ValueId first = p.add1("softmax", {y});
              const ValueId second = p.add1("softmax", {p.pointwise(ORR_FN_NEG, {y})});
              return p.add1("matmul", {first, build::transpose(p, second, {1, 0})});
            }),
            5u);  // the last one copies the product
}

// What is left of a running mean is computed where the rest is added, not in forward.
TEST(Updates, ComputeWhatTheyAloneReadOfStates) {
  auto mean = std::make_shared<State>();
  mean->name = "mean", mean->type = {ORR_F32, {4, 6}};
  mean->initial = Initial::of_data(HostTensor::make(mean->type));
  Program p;
  const ValueId old = p.state_value(mean), x = p.input("x", {ORR_F32, {4, 6}});
  const ValueId kept = p.pointwise(ORR_FN_MUL, {old, Operand::number(0.9)});
  const ValueId y = p.add1("softmax", {x});
  p.set_phase(Phase::update);
  p.update(old, p.pointwise(ORR_FN_ADD, {kept, y}));
  EXPECT_EQ(Machine(p, {"reference"}).plan().launches.size(), 2u);
}

TEST(Sums, OfAScalarsSquareAreItsSquare) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {}});
  give(p, "square", build::reduce(p, "sumsq", x, {}, false));
  EXPECT_EQ(Machine(p, {"reference"}).run({{"x", {3}}}).at("square"), Values{9});
}

std::shared_ptr<State> state(const char* name, float value) {
  auto s = std::make_shared<State>();
  s->name = name, s->type = {ORR_F32, {4}}, s->role = Role::state;
  s->initial = Initial::of_constant(value);
  materialize({s});
  return s;
}

float first(State& s) { return read_state(s).data<float>()[0]; }

TEST(Updates, SeeOldStatesOnly) {
  auto a = state("a", 1), b = state("b", 2), c = state("c", 3);
  Program p;
  ValueId va = p.state_value(a), vb = p.state_value(b), vc = p.state_value(c);
  p.update(va, vb);
  p.update(vb, va);
  p.update(vc, p.pointwise(ORR_FN_ADD, {vc, va}));
  Machine(p, {"reference"}).run({});
  EXPECT_EQ(first(*a), 2);
  EXPECT_EQ(first(*b), 1);
  EXPECT_EQ(first(*c), 4);
}

TEST(Updates, KeepTheOldValueOfAStateThatChanges) {
  auto now = state("now", 8), before = state("before", 0);
  Program p;
  ValueId v = p.state_value(now);
  p.update(v, p.pointwise(ORR_FN_MUL, {v, Operand::number(0.5)}));
  p.update(p.state_value(before), v);
  Machine machine(p, {"reference"});
  machine.run({});
  EXPECT_EQ(first(*now), 4);
  EXPECT_EQ(first(*before), 8);
  machine.run({});
  EXPECT_EQ(first(*now), 2);
  EXPECT_EQ(first(*before), 4);
}

// Replaces two of the four numbers of a cache from `at` on, by others of its own or by an input.
// Returns how many launches that takes, and leaves the sum of the new numbers in `sum`.
size_t replace_two(const std::shared_ptr<State>& cache, double at, bool by_its_own,
                   bool old_is_read, double& sum) {
  Program p;
  const ValueId old = p.state_value(cache), place = p.input("at", {ORR_I64, {}});
  const ValueId part =
      by_its_own ? build::split(p, old, 0, {2, 2})[1] : p.input("u", {ORR_F32, {2}});
  const ValueId next = build::update_slice(p, old, part, 0, place);
  p.update(old, next);
  give(p, "sum", build::reduce(p, "sum", next, {0}, false));
  if (old_is_read) give(p, "before", build::reduce(p, "sum", old, {0}, false));
  Machine machine(p, {"reference"});
  Named in = {{"at", {at}}};
  if (!by_its_own) in["u"] = {5, 6};
  const Named out = machine.run(in);
  sum = out.at("sum")[0];
  EXPECT_TRUE(!old_is_read || out.at("before") == Values{10});
  return machine.plan().launches.size();
}

TEST(Updates, WriteAPartWhereTheStateLies) {
  double sum = 0;
  for (const bool by_its_own : {false, true})
    for (const bool old_is_read : {false, true}) {
      SCOPED_TRACE(fmt::format("{} {}", by_its_own, old_is_read));
      auto cache = state("cache", 0);
      HostTensor numbers = HostTensor::make({ORR_F32, {4}});
      for (int i = 0; i < 4; ++i) numbers.data<float>()[i] = static_cast<float>(i + 1);
      write_state(*cache, numbers);
      const size_t launches = replace_two(cache, 1, by_its_own, old_is_read, sum);
      // The part, the sum, and the copy of the sum that is given.
      EXPECT_EQ(launches == 3, !by_its_own && !old_is_read) << launches;
      EXPECT_EQ(sum, by_its_own ? 1 + 3 + 4 + 4 : 1 + 5 + 6 + 4);
      const HostTensor now = read_state(*cache);
      EXPECT_EQ(now.data<float>()[1], by_its_own ? 3 : 5);
      EXPECT_EQ(now.data<float>()[2], by_its_own ? 4 : 6);
    }
}

TEST(Microbatches, AreDealtEvenlyAndInOrder) {
  for (int64_t microbatches = 1; microbatches <= 40; ++microbatches)
    for (int ranks = 1; ranks <= microbatches; ++ranks) {
      std::vector<int64_t> first = assign_microbatches(microbatches, ranks);
      ASSERT_EQ(first.size(), static_cast<size_t>(ranks) + 1);
      EXPECT_EQ(first.front(), 0);
      EXPECT_EQ(first.back(), microbatches);
      for (size_t r = 0; r + 1 < first.size(); ++r) {
        int64_t n = first[r + 1] - first[r];
        EXPECT_TRUE(n == microbatches / ranks || n == (microbatches + ranks - 1) / ranks)
            << microbatches << " on " << ranks;
      }
    }
}

TEST(Microbatches, OfAnyRanksAreOneTree) {
  for (int64_t microbatches : {1, 2, 3, 5, 6, 7, 8, 12, 13}) {
    Program p;
    ValueId x = p.batch_input("x", {ORR_F32, {microbatches * 2, 5}});
    give(p, "sum", build::reduce(p, "sum", x, {0}, false));
    Values rows;
    std::mt19937 random(static_cast<uint32_t>(microbatches));
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (int64_t i = 0; i < microbatches * 10; ++i) rows.push_back(uniform(random));
    auto nodes = [&](int64_t lo, int64_t hi) {
      Values mine(rows.begin() + lo * 10, rows.begin() + hi * 10);
      return Machine(p, {"reference"}, {microbatches, lo, hi, 2}).run({{"x", mine}})["sum"];
    };
    Values whole = nodes(0, microbatches);
    for (int ranks = 1; ranks <= std::min<int64_t>(6, microbatches); ++ranks) {
      std::vector<int64_t> first = assign_microbatches(microbatches, ranks);
      NodeTree tree(ORR_F32, microbatches);
      for (size_t r = 0; r + 1 < first.size(); ++r)
        tree.add(first[r], first[r + 1], nodes(first[r], first[r + 1]));
      EXPECT_EQ(tree.whole(), whole) << microbatches << " leaves on " << ranks << " ranks";
    }
  }
}

// The batch as the second dim, as recurrent models have it: sums over it must still be leaves.
TEST(Microbatches, MayBeTheSecondDim) {
  Program p;
  ValueId ids = build::transpose(p, p.batch_input("ids", {ORR_I64, {6, 4}}), {1, 0});
  ValueId table = p.input("table", {ORR_F32, {7, 5}}), w = p.input("w", {ORR_F32, {5, 5}});
  ValueId scale = p.input("scale", {ORR_F32, {5}}), shift = p.input("shift", {ORR_F32, {5}});
  ValueId x = build::matmul(p, build::gather(p, table, ids), w);
  ValueId y = build::layernorm(p, x, scale, shift, 1e-5);
  ValueId loss =
      build::mean(p, p.pointwise(ORR_FN_MUL, {y, p.pointwise(ORR_FN_TANH, {x})}), {}, false);
  std::vector<ValueId> wrt = {table, w, scale, shift};
  Differentiated d = differentiate(p, loss, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) {
    ASSERT_EQ(d.parts[i].partial.size(), 1u);
    give(p, p.value(wrt[i]).name, d.parts[i].partial[0]);
  }
  Named inputs;
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (ValueId v : wrt)
    for (int64_t i = 0; i < p.type(v).elements(); ++i)
      inputs[p.value(v).name].push_back(uniform(random));
  auto nodes = [&](int64_t lo, int64_t hi) {
    Named mine = inputs;
    for (int64_t i = lo * 4; i < hi * 4; ++i) mine["ids"].push_back(static_cast<double>(i * 5 % 7));
    mine["$weight"] = Values(static_cast<size_t>(hi - lo), 1);
    return Machine(p, {"cpu"}, {6, lo, hi, 1}).run(mine);
  };
  Named whole = nodes(0, 6);
  for (int ranks : {2, 3, 6}) {
    std::vector<int64_t> first = assign_microbatches(6, ranks);
    std::map<std::string, NodeTree> trees;
    for (size_t r = 0; r + 1 < first.size(); ++r)
      for (auto& [name, values] : nodes(first[r], first[r + 1]))
        trees.try_emplace(name, ORR_F32, 6).first->second.add(first[r], first[r + 1], values);
    for (auto& [name, tree] : trees)
      EXPECT_EQ(tree.whole(), whole[name]) << name << " on " << ranks;
  }
}

}  // namespace
}  // namespace program_test
