// SPDX-License-Identifier: Apache-2.0
//
// Right numbers: `reference` against oracles in f64, every other host plugin against `reference`.
#include "compare.h"

namespace kernel_suite {
namespace {

bool any(const Case&) { return true; }

std::vector<Param> others() {
  std::vector<std::string> names = host_plugins();
  std::erase(names, "reference");
  return params(names, any);
}

class Reference : public ::testing::TestWithParam<Param> {};

TEST_P(Reference, IsWhatTheOpSays) {
  const Case& c = GetParam().c;
  for (bool exact : {true, false}) {
    if (exact && !c.exact) continue;
    std::vector<Values> inputs = make_inputs(c, exact, 1);
    RunResult r = run("reference", c, inputs);
    ASSERT_EQ(r.unsupported, "");
    ASSERT_TRUE(clean(r));
    if (exact)
      EXPECT_TRUE(equal(c, r.values, expected(c, inputs))) << "integers";
    else
      EXPECT_TRUE(near(c, r.values, c.oracle(c, inputs))) << "random";
  }
}

INSTANTIATE_TEST_SUITE_P(All, Reference, ::testing::ValuesIn(params({"reference"}, any)),
                         param_name);

class Plugin : public ::testing::TestWithParam<Param> {};

TEST_P(Plugin, AgreesWithReference) {
  const auto& [plugin, c] = GetParam();
  for (bool exact : {true, false}) {
    if (exact && !c.exact) continue;
    std::vector<Values> inputs = make_inputs(c, exact, 2);
    RunResult r = run(plugin, c, inputs), reference = run("reference", c, inputs);
    if (!r.unsupported.empty()) return RecordProperty("unsupported", r.unsupported);
    ASSERT_TRUE(clean(r));
    if (exact)
      EXPECT_TRUE(equal(c, r.values, reference.values)) << "integers";
    else
      EXPECT_TRUE(near(c, r.values, reference.values)) << "random";
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Plugin);
INSTANTIATE_TEST_SUITE_P(All, Plugin, ::testing::ValuesIn(others()), param_name);

}  // namespace
}  // namespace kernel_suite
