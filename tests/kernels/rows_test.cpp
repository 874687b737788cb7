// SPDX-License-Identifier: Apache-2.0
//
// `orrery check` holds rows that are computed alone to the bits that they have in the batch, where
// the plugin gives both one numerics id. Ours do so for every op that they have.
#include "compare.h"
#include "conformance/kernel/cases.h"

namespace kernel_suite {
namespace {

class Rows : public ::testing::TestWithParam<std::string> {};

TEST_P(Rows, AloneHaveTheNumericsOfTheBatch) {
  int compared = 0;
  for (const Case& c : all_cases()) {
    const orr_support batch = support_of(GetParam(), c);
    if (batch.score <= 0) continue;
    for (const Axis& axis : c.axes)
      for (int64_t n : {1, 2, 3, 64, 255}) {
        const orr_support rows = support_of(GetParam(), part(c, axis, n));
        ASSERT_GT(rows.score, 0) << c.name() << ", " << n << " rows: " << rows.reason;
        EXPECT_STREQ(rows.numerics, batch.numerics) << c.name() << ", " << n << " rows";
        ++compared;
      }
  }
  EXPECT_GT(compared, 500);
}

INSTANTIATE_TEST_SUITE_P(Plugins, Rows, ::testing::ValuesIn(host_plugins()));

}  // namespace
}  // namespace kernel_suite
