// SPDX-License-Identifier: Apache-2.0
//
// The property that everything else rests on: a step that is accepted has the same bits on 1, 2, 3
// and 4 ranks, whatever it is made of and however it is spread, and another number of microbatches
// changes it by rounding alone. A step that is refused says its line; `zero` refuses none.
// ORRERY_RANDOM_PROGRAMS is how many steps are tried, ORRERY_RANDOM_SEED the first one's seed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/error.h"
#include "edit/edit.h"
#include "lower/lower.h"
#include "program/op.h"
#include "program/op_group.h"
#include "random_training.h"
#include "side_by_side.h"
#include "stack.h"

namespace program_test {
namespace {

using namespace orrery;

using Outcome = std::map<std::string, Bytes>;

Outcome run(const RandomTraining& t, const Program& p, const Mesh& mesh, int64_t microbatches,
            const std::vector<std::string>& kernels) {
  SideBySide ranks(p, mesh, microbatches, kernels);
  Outcome found;
  Named scalars = t.scalars();
  for (int step = 1; step <= 2; ++step) {
    scalars["$step"] = {double(step)};
    for (auto& [name, value] : ranks.step(t.fields(), scalars))
      found[fmt::format("{} of step {}", name, step)] = value;
  }
  // Others keep what they hold, if a rank of a pipeline holds them at all.
  for (auto& [state, next] : p.updates())
    found[p.value(state).name] = ranks.state(p.value(state).name);
  return found;
}

struct Way {
  std::string name;
  std::vector<StrategyUse> stack;
  bool one_by_one = false;
};

const std::vector<Way>& ways() {
  static const std::vector<Way> found = [] {
    std::vector<Way> all = {{"data", {{"data", {}, "model.lua:99"}}},
                            {"data, one by one", {{"data", {}, "model.lua:99"}}, true}};
    for (int64_t stage : {1, 2, 3})
      all.push_back({fmt::format("zero {}", stage),
                     {{"data", {}, "model.lua:99"}, {"zero", {{"stage", stage}}, "model.lua:99"}}});
    for (const char* schedule : {"gpipe", "1f1b", "zb1"})
      all.push_back({fmt::format("pipeline by {}", schedule),
                     {{"data", {{"size", int64_t{1}}}, "model.lua:99"},
                      {"pipeline", {{"schedule", std::string(schedule)}}, "model.lua:99"}}});
    for (int64_t stage : {1, 3})
      all.push_back({fmt::format("two stages, zero {}", stage),
                     {{"pipeline", {{"size", int64_t{2}}}, "model.lua:99"},
                      {"data", {}, "model.lua:99"},
                      {"zero", {{"stage", stage}}, "model.lua:99"}}});
    all.push_back({"recompute", {{"data", {}, "model.lua:99"}, {"recompute", {}, "model.lua:99"}}});
    return all;
  }();
  return found;
}

struct Tally {
  int accepted = 0, refused = 0, lines = 0, groups = 0, sums = 0;
  std::set<std::string> kinds;
  std::map<std::string, int> why;
};

using Kernels = std::vector<std::string>;

// Counts what is one launch on the first rank because a plugin has claimed it.
Outcome spread_over(const RandomTraining& t, const Way& way, int ranks, int64_t microbatches,
                    const Kernels& kernels, Tally& tally) {
  Program p = t.program();
  Mesh mesh = applied(p, way.stack, ranks);
  mesh.schedule.one_by_one = mesh.schedule.one_by_one || way.one_by_one;
  if (kernels.back() == "groups")
    for (const Launch& launch : lower({&p, &mesh, microbatches, 0, kernels}).launches)
      if (const auto& group = launch.op.group) {
        ++tally.groups;
        tally.sums += std::any_of(group->ops.begin(), group->ops.end(),
                                  [](const Op& op) { return op.kind == "reduce"; });
      }
  return run(t, p, mesh, microbatches, kernels);
}

float at(const Bytes& b, size_t i) {
  float x;
  std::memcpy(&x, &b[i * 4], 4);
  return x;
}

// "" or the first difference; NaNs are alike.
std::string difference(const Outcome& a, const Outcome& b, float tolerance) {
  for (auto& [name, x] : a) {
    const Bytes& y = b.at(name);
    if (x == y) continue;
    if (x.size() % 4) return name;
    for (size_t i = 0; i < x.size() / 4; ++i) {
      const float u = at(x, i), v = at(y, i);
      if (std::isnan(u) && std::isnan(v)) continue;
      if (tolerance > 0 && (std::abs(u - v) <= tolerance * (1 + std::abs(u)) || std::abs(u) > 1e6))
        continue;
      if (tolerance == 0 && std::memcmp(&u, &v, 4) == 0) continue;
      return fmt::format("{}[{}]: {} and {}", name, i, u, v);
    }
  }
  return "";
}

void count_kinds(const Program& p, Tally& tally) {
  for (const Op& op : p.ops()) tally.kinds.insert(op.kind);
}

// Fails with the seed of a step that differs; errors must name a line.
void check(uint32_t seed, Tally& tally) {
  auto refused = [&](const std::string& why) {
    EXPECT_NE(why.find("model.lua:"), std::string::npos) << "seed " << seed << ": no line: " << why;
    EXPECT_EQ(why.find("the plan"), std::string::npos) << "seed " << seed << ": ours: " << why;
    ++tally.why[why.substr(why.find("net: ") == std::string::npos ? 0 : why.find("net: ") + 5, 60)];
  };
  std::unique_ptr<RandomTraining> t;
  try {
    t = std::make_unique<RandomTraining>(seed);
  } catch (const Error& e) {
    ++tally.refused;
    return refused(e.what());
  } catch (const std::exception& e) {
    ADD_FAILURE() << "seed " << seed << ": " << e.what();
    return;
  }
  for (const std::string& why : t->refused()) ++tally.lines, refused(why);
  std::mt19937 random(seed);
  const int64_t m = 1 + static_cast<int64_t>(random() % 6);
  if (m > t->batch()) return;
  try {
    // Half of the steps are spread with a plugin that claims groups of ops (tests/program/groups).
    const Kernels kernels = {"cpu", "reference"}, claiming = {"cpu", "reference", "groups"};
    const Kernels& spread = random() % 2 ? claiming : kernels;
    const Outcome alone = spread_over(*t, ways()[0], 1, m, kernels, tally);
    count_kinds(t->program(), tally);
    for (int ranks = 1; ranks <= std::min<int64_t>(4, m); ++ranks) {
      const Way& way = ways()[random() % ways().size()];
      std::string wrong;
      try {
        wrong = difference(alone, spread_over(*t, way, ranks, m, spread, tally), 0);
      } catch (const Error& e) {  // one that has no line is the model's, or the plan's
        refused(e.what());
        EXPECT_NE(way.name.rfind("zero", 0), 0u) << "seed " << seed << ": " << e.what();
      }
      EXPECT_EQ(wrong, "") << "seed " << seed << ", " << way.name << " on " << ranks << " ranks, "
                           << m << " microbatches of " << t->batch();
    }
    if (t->smooth()) {
      const std::string wrong =
          difference(alone, spread_over(*t, ways()[0], 1, 1, kernels, tally), 1e-3f);
      EXPECT_EQ(wrong, "") << "seed " << seed << ", 1 and " << m << " microbatches of "
                           << t->batch();
    }
    ++tally.accepted;
  } catch (const Error& e) {
    ++tally.refused;
    refused(e.what());
  } catch (const std::exception& e) {
    ADD_FAILURE() << "seed " << seed << ": " << e.what();
  }
}

uint32_t number_from(const char* name, uint32_t fallback) {
  const char* given = std::getenv(name);
  return given ? static_cast<uint32_t>(std::atol(given)) : fallback;
}

TEST(RandomSteps, HaveTheSameBitsOnAnyNumberOfRanks) {
  const uint32_t count = number_from("ORRERY_RANDOM_PROGRAMS", 300),
                 first = number_from("ORRERY_RANDOM_SEED", 301);  // among which every op occurs
  Tally tally;
  for (uint32_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed)
    check(seed, tally);
  std::printf("%d steps accepted, %d refused, %d lines refused, %d groups, %d of sums\n",
              tally.accepted, tally.refused, tally.lines, tally.groups, tally.sums);
  for (auto& [why, n] : tally.why) std::printf("%6d %s\n", n, why.c_str());
  if (count < 300) return;
  EXPECT_GT(tally.accepted, static_cast<int>(count) / 2);
  EXPECT_GT(tally.groups, static_cast<int>(count));
  EXPECT_GT(tally.sums, 5);
  for (const OpDef* def : all_op_defs())
    if (!names_axis(def->kind) && def->kind != std::string("unshard")) {  // strategies write it
      EXPECT_TRUE(tally.kinds.count(def->kind)) << def->kind << " never occurs";
    }
}

}  // namespace
}  // namespace program_test
