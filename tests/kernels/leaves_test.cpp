// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch: one call over n leaves is the binary tree of n calls over one, and the nodes
// of any number of ranks combine to the same root.
#include "check/kernel/leaves.h"

#include "compare.h"

namespace kernel_suite {
namespace {

bool has_leaves(const Case& c) { return !c.leaf_in.empty(); }

class Leaves : public ::testing::TestWithParam<Param> {
 protected:
  const std::string& plugin_ = GetParam().plugin;
  const Case& one_ = GetParam().c;
};

TEST_P(Leaves, OfOneCallAreTheTreeOfSingleCalls) {
  for (int64_t total : {1, 2, 3, 4, 5, 7, 8, 12, 13})
    EXPECT_EQ(leaves_of_one_call(plugin_, one_, total, 4), "");
}

TEST_P(Leaves, OfAnyRanksCombineToOneRoot) {
  for (int64_t total : {6, 12, 13})
    for (int64_t ranks = 2; ranks <= 6; ++ranks)
      EXPECT_EQ(leaves_of_ranks(plugin_, one_, total, ranks, 5), "");
}

// A plugin that has the op, but not its leaves, is at fault; one that lacks the op is not.
std::vector<Param> supported() {
  std::vector<Param> all = params(host_plugins(), has_leaves);
  std::erase_if(all, [](const Param& p) {
    return !run(p.plugin, p.c, make_inputs(p.c, false, 4)).unsupported.empty();
  });
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, Leaves, ::testing::ValuesIn(supported()), param_name);

}  // namespace
}  // namespace kernel_suite
