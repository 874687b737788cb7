// SPDX-License-Identifier: Apache-2.0
//
// The cpu plugin gives the same bits with AVX2 as with the widest instructions of this machine, and
// with the instruction for pairs of bf16 or without. The plugins that are held to less are named on
// the command line.
#include <gtest/gtest.h>

#include <cstdio>

#include "conformance/kernel/cases.h"
#include "plugin/registry.h"

namespace kernel_suite {
namespace {

// Compares all cases of the plugins "cpu" and `other`.
void expect_same_bits(const std::string& other) {
  int compared = 0;
  for (const Case& c : all_cases()) {
    std::vector<Values> inputs = make_inputs(c, false, 11);
    RunResult wide = run("cpu", c, inputs), narrow = run(other, c, inputs);
    ASSERT_EQ(wide.unsupported, narrow.unsupported) << c.name();
    if (!wide.unsupported.empty()) continue;
    EXPECT_EQ(wide.bits, narrow.bits) << c.name();
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

TEST(Cpu, GivesTheSameBitsWithAvx2) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512 here: there is one way only";
  expect_same_bits("cpu-avx2");
}

TEST(Cpu, GivesTheSameBitsWithoutTheInstructionForPairs) {
  if (!__builtin_cpu_supports("avx512bf16")) GTEST_SKIP() << "this CPU has no such instruction";
  expect_same_bits("cpu-unpaired");
}

}  // namespace
}  // namespace kernel_suite

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: cpu_isa_test AVX2_PLUGIN UNPAIRED_PLUGIN\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) orrery::Registry::get().add(argv[i]);
  return RUN_ALL_TESTS();
}
