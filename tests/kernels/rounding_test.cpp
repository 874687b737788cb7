// SPDX-License-Identifier: Apache-2.0
//
// However a plugin combines the instructions of an expression, each is rounded by itself: the same
// expression with every register stored as well, which leaves nothing to combine, gives equal bits.
#include "compare.h"
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

constexpr size_t kMostOutputs = 64;

Case with_all_stored(Case c) {
  for (size_t r = 0; r < c.instrs.size() && c.stored.size() < kMostOutputs; ++r) {
    if (c.instrs[r].fn == ORR_FN_INPUT || c.instrs[r].fn == ORR_FN_CONST) continue;
    std::vector<int64_t> dims(c.out[0].dims, c.out[0].dims + c.out[0].rank);
    c.stored.push_back(int32_t(r));
    c.out.push_back(tensor(c.instrs[r].dtype, dims));
  }
  return c;
}

class Rounding : public ::testing::TestWithParam<std::string> {};

TEST_P(Rounding, OfEachInstructionStays) {
  int compared = 0;
  for (const Case& c : pointwise_cases()) {
    std::vector<Values> inputs = make_inputs(c, false, 5);
    RunResult alone = run(GetParam(), c, inputs), all = run(GetParam(), with_all_stored(c), inputs);
    if (!alone.unsupported.empty() || !all.unsupported.empty()) continue;
    ASSERT_TRUE(clean(alone) && clean(all)) << c.name();
    for (size_t i = 0; i < alone.bits.size(); ++i)
      EXPECT_EQ(alone.bits[i], all.bits[i]) << c.name();
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Rounding, ::testing::ValuesIn(host_plugins()));

}  // namespace
}  // namespace kernel_suite
