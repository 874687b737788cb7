// SPDX-License-Identifier: Apache-2.0
//
// Attention of grouped heads and with windows: what becomes an attribute and what a bias, that
// kernels which know neither compute the same, and how many pairs a plan counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "launched_kinds.h"
#include "program/autodiff.h"
#include "program/build.h"
#include "program/op.h"

namespace program_test {
namespace {

using namespace orrery;

struct How {
  int64_t kv_heads = 4, window = 0;
  bool causal = true;
  bool biased = false;
  int64_t queries = 5, keys = 7;
};

// Attention of four heads with the gradients of all that it reads.
Program attention(const How& how) {
  Program p;
  const ValueId q = p.input("q", {ORR_F32, {2, how.queries, 8}}),
                k = p.input("k", {ORR_F32, {2, how.keys, 2 * how.kv_heads}}),
                v = p.input("v", {ORR_F32, {2, how.keys, 2 * how.kv_heads}});
  build::AttentionOptions o{
      .heads = 4, .kv_heads = how.kv_heads, .causal = how.causal, .window = how.window};
  std::vector<ValueId> of = {q, k, v};
  if (how.biased) of.push_back(o.bias = p.input("b", {ORR_F32, {1, 4, how.queries, how.keys}}));
  const ValueId y = build::attention(p, q, k, v, o);
  give(p, "y", y);
  const std::vector<ValueId> gradients =
      pull_back(p, {y}, {p.input("dy", {ORR_F32, {2, how.queries, 8}})}, of);
  for (size_t i = 0; i < of.size(); ++i) give(p, "d" + std::to_string(i), gradients[i]);
  return p;
}

Named random_inputs(const Program& p) {
  Named inputs;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const Value& v : p.values())
    if (v.role == Role::input)
      for (int64_t n = v.type.elements(); n > 0; --n) inputs[v.name].push_back(normal(random));
  return inputs;
}

void expect_close(const Named& got, const Named& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, values] : want) {
    ASSERT_EQ(got.at(name).size(), values.size()) << name;
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(got.at(name)[i], values[i], 1e-5) << name << "[" << i << "]";
  }
}

const How kCases[] = {{.kv_heads = 2},
                      {.kv_heads = 1, .causal = false},
                      {.window = 2},
                      {.window = 2, .causal = false},
                      {.window = 3, .causal = false, .queries = 7, .keys = 5},
                      {.kv_heads = 2, .window = 3},
                      {.kv_heads = 2, .window = 3, .causal = false, .biased = true}};

TEST(OlderKernels, GetAllHeadsOfKeysAndABias) {
  for (const How& how : kCases) {
    SCOPED_TRACE(testing::Message() << how.kv_heads << " heads, window " << how.window);
    const Program p = attention(how);
    Machine newer(p, {"reference"}), older(p, {"reference", "older"});
    expect_close(older.run(random_inputs(p)), newer.run(random_inputs(p)));
    int computed = 0;
    for (const Launch& launch : older.plan().launches) {
      if (!launch.op.kind.starts_with("attention")) continue;
      EXPECT_EQ(launch.kernels, 1);
      EXPECT_FALSE(launch.op.attrs.has("window"));
      ++computed;
    }
    EXPECT_EQ(computed, 2);
    EXPECT_EQ(count(kinds(p), "attention") + count(kinds(p), "attention_grad"), 2);
    for (const Launch& launch : newer.plan().launches) {
      if (launch.op.kind == "attention") {
        EXPECT_EQ(launch.in[1].dims[1], how.kv_heads);
      }
    }
  }
}

// A bias of zeros is the plain program's, with nothing before and behind its attention.
TEST(OlderKernels, AreAskedForTheSameWhereNothingIsNew) {
  const Program p = attention({});
  const auto number = [&](const Kinds& kernels) { return kinds(p, kernels).size(); };
  EXPECT_EQ(number({"reference", "older"}), number({"reference"}));
}

const Op& only_attention(const Program& p) {
  const auto at = std::find_if(p.ops().begin(), p.ops().end(),
                               [](const Op& op) { return op.kind == "attention"; });
  return *at;
}

TEST(Windows, AreAttributesUnlessThereIsAnOffset) {
  Program p;
  const ValueId x = p.input("x", {ORR_F32, {1, 6, 4}});
  const auto made = [&](const build::AttentionOptions& o) {
    build::attention(p, x, x, x, o);
    return std::find_if(p.ops().rbegin(), p.ops().rend(),
                        [](const Op& op) { return op.kind == "attention"; });
  };
  auto op = made({.window = 3});
  EXPECT_EQ(attr_int(op->attrs, "window", 0), 3);
  EXPECT_EQ(op->in.size(), 3u);
  op = made({.causal = true, .window = 3, .offset = Operand::number(0)});
  EXPECT_FALSE(op->attrs.has("window"));
  EXPECT_EQ(op->in.size(), 4u);
  EXPECT_TRUE(made({.causal = true, .window = 5})->attrs.has("window"));
  EXPECT_FALSE(made({.causal = true, .window = 6})->attrs.has("window"));  // hides nothing
}

// To half a key for each query, which a triangle's edge counts.
TEST(Costs, CountThePairsThatAreSeen) {
  for (const bool causal : {false, true})
    for (const int64_t window : {0, 1, 3, 8, 40})
      for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{32, 32}, {5, 32}, {32, 5}}) {
        Program p;
        const ValueId q = p.input("q", {ORR_F32, {1, queries, 4}}),
                      k = p.input("k", {ORR_F32, {1, keys, 4}});
        Attrs attrs{{"heads", int64_t{1}}, {"causal", int64_t{causal}}};
        if (window) attrs.set("window", window);
        p.add("attention", {q, k, k}, attrs);
        const Op& op = only_attention(p);
        const double counted =
            op_def("attention").cost(args_of(p, op), out_types(p, op)).flops / (2 * 2.0 * 4);
        double seen = 0;
        for (int64_t t = 0; t < queries; ++t)
          for (int64_t s = 0; s < keys; ++s) {
            const int64_t lag = t + keys - queries - s;
            seen += (!causal || lag >= 0) && (!window || std::abs(lag) < window);
          }
        EXPECT_NEAR(counted, seen, 0.5 * static_cast<double>(queries))
            << causal << " " << window << " " << queries << "x" << keys;
      }
}

}  // namespace
}  // namespace program_test
