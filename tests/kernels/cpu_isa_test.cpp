// SPDX-License-Identifier: Apache-2.0
//
// The cpu plugin gives the same bits with AVX2 as with the widest instructions of this machine. The
// plugin that is held to AVX2 is named on the command line.
#include <gtest/gtest.h>

#include <cstdio>

#include "conformance/kernel/cases.h"
#include "plugin/registry.h"

namespace kernel_suite {
namespace {

TEST(Cpu, GivesTheSameBitsWithAvx2) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512 here: there is one way only";
  int compared = 0;
  for (const Case& c : all_cases()) {
    std::vector<Values> inputs = make_inputs(c, false, 11);
    RunResult wide = run("cpu", c, inputs), narrow = run("cpu-avx2", c, inputs);
    ASSERT_EQ(wide.unsupported, narrow.unsupported) << c.name();
    if (!wide.unsupported.empty()) continue;
    EXPECT_EQ(wide.bits, narrow.bits) << c.name();
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace kernel_suite

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: cpu_isa_test PLUGIN\n");
    return 2;
  }
  orrery::Registry::get().add(argv[1]);
  return RUN_ALL_TESTS();
}
