// SPDX-License-Identifier: Apache-2.0
//
// Pointwise expressions as machine code give the bits of the block machine: random expressions on
// the cpu plugin, on the plugin "cpu-avx2" and on "cpu-blocks", which is refused executable memory.
// The last two are named on the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "cpu_expressions.h"
#include "plugin/registry.h"
#include "pointwise_code.h"

namespace kernel_suite {
namespace {

using orr_cpu::pointwise::Isa;

// NaNs are equal whatever their sign and payload: which operand's a result takes is the compilers'
// choice in the block machine.
void unify_nans(int32_t dtype, std::vector<uint8_t>& bits) {
  const auto unify = [&](auto word, uint64_t infinity, uint64_t size) {
    for (size_t at = 0; at < bits.size(); at += sizeof word) {
      std::memcpy(&word, &bits[at], sizeof word);
      if ((word & size) > infinity) word = decltype(word)(size);
      std::memcpy(&bits[at], &word, sizeof word);
    }
  };
  if (dtype == ORR_F64) unify(uint64_t(), 0x7ff0000000000000, 0x7fffffffffffffff);
  if (dtype == ORR_F32) unify(uint32_t(), 0x7f800000, 0x7fffffff);
  if (dtype == ORR_BF16) unify(uint16_t(), 0x7f80, 0x7fff);
  if (dtype == ORR_F16) unify(uint16_t(), 0x7c00, 0x7fff);
}

std::vector<std::vector<uint8_t>> bits_on(const char* plugin, const Case& c, int32_t inplace) {
  RunOptions options;
  options.inplace = inplace;
  RunResult r = run(plugin, c, make_inputs(c, false, 5), options);
  EXPECT_EQ(r.unsupported + r.error + r.damage, "") << c.name();
  for (size_t i = 0; i < r.bits.size(); ++i) unify_nans(c.out[i].dtype, r.bits[i]);
  return r.bits;
}

// Where two runs differ first, or "".
std::string difference(const Case& c, const std::vector<std::vector<uint8_t>>& a,
                       const std::vector<std::vector<uint8_t>>& b) {
  for (size_t i = 0; i < c.out.size(); ++i) {
    if (a[i].size() != b[i].size()) return "sizes of output " + std::to_string(i);
    const auto at = std::mismatch(a[i].begin(), a[i].end(), b[i].begin()).first - a[i].begin();
    if (at == long(a[i].size())) continue;
    return "output " + std::to_string(i) + " at byte " + std::to_string(at);
  }
  return "";
}

// The first input is whole, as outputs are.
bool fits_in_place(const Case& c) { return c.in[0].dtype == c.out[0].dtype; }

constexpr uint32_t kExpressions = 400;

// First, as the plugin says so once.
TEST(CpuCode, WarnsOnceOfRefusedMemory) {
  testing::internal::CaptureStdout();
  for (uint32_t seed = 0; seed < 2; ++seed) bits_on("cpu-blocks", random_case(seed, false), 0);
  const std::string log = testing::internal::GetCapturedStdout();
  const std::string warning = "cpu: the system refuses executable memory (Invalid argument)";
  EXPECT_NE(log.find(warning), std::string::npos) << log;
  EXPECT_EQ(log.find(warning), log.rfind(warning)) << log;
}

// With integers, doubles and random numbers or without.
class CpuCode : public testing::TestWithParam<bool> {};

TEST_P(CpuCode, GivesTheBitsOfTheBlockMachine) {
  for (uint32_t seed = 0; seed < kExpressions; ++seed) {
    const Case c = random_case(seed, GetParam());
    const auto want = bits_on("cpu-blocks", c, 0);
    for (const char* plugin : {"cpu", "cpu-avx2"})
      for (int32_t inplace = 0; inplace <= (fits_in_place(c) ? 1 : 0); ++inplace)
        EXPECT_EQ(difference(c, bits_on(plugin, c, inplace), want), "")
            << plugin << ", seed " << seed << ", in place " << inplace;
  }
}

// With AVX-512, code can be made anywhere.
TEST_P(CpuCode, IsMadeOfEveryExpressionForBothInstructionSets) {
  int spilling = 0;
  for (uint32_t seed = 0; seed < kExpressions; ++seed) {
    const Case c = random_case(seed, GetParam());
    const AbiOp abi(c);
    const auto compiled = orr_cpu::pointwise::compile(abi.op);
    for (const Isa& isa : {Isa{nullptr, 64, false}, Isa{nullptr, 128, true}}) {
      const auto code = orr_cpu::pointwise::translate(compiled, isa.block * 8 + 64, isa);
      EXPECT_FALSE(code.bytes.empty()) << "seed " << seed;
      spilling += code.spill_bytes > 0;
    }
  }
  EXPECT_GT(spilling, 20);
}

INSTANTIATE_TEST_SUITE_P(Types, CpuCode, testing::Bool());

// A cast of the function, or of the number itself if it is 0.
bool is_code(int32_t from, int32_t fn, int32_t to, bool wide) {
  Case c{"pointwise", "one", {tensor(from, {64})}, {tensor(to, {64})}};
  c.instrs = {{ORR_FN_INPUT, from, 0, 0, 0, 0, 0}};
  if (fn) c.instrs.push_back({fn, from, 0, 0, 0, 0, 0});
  if (from != to) c.instrs.push_back({ORR_FN_CAST, to, fn ? 1 : 0, 0, 0, 0, 0});
  c.stored = {int32_t(c.instrs.size()) - 1};
  const AbiOp abi(c);
  const Isa isa = {nullptr, wide ? 128 : 64, wide};
  const auto compiled = orr_cpu::pointwise::compile(abi.op);
  return !orr_cpu::pointwise::translate(compiled, isa.block * 8 + 64, isa).bytes.empty();
}

TEST(CpuCodeSteps, LeavesOtherStepsToTheBlockMachine) {
  for (const bool wide : {false, true}) {
    EXPECT_TRUE(is_code(ORR_F32, ORR_FN_EXP, ORR_F32, wide));
    EXPECT_FALSE(is_code(ORR_F32, ORR_FN_SIN, ORR_F32, wide));
    EXPECT_FALSE(is_code(ORR_F64, ORR_FN_EXP, ORR_F64, wide));
    EXPECT_FALSE(is_code(ORR_I64, ORR_FN_DIV, ORR_I64, wide));
    EXPECT_FALSE(is_code(ORR_F32, 0, ORR_U8, wide));
    EXPECT_EQ(is_code(ORR_I64, 0, ORR_F32, wide), wide);
    EXPECT_EQ(is_code(ORR_I64, 0, ORR_F64, wide), wide);
    EXPECT_EQ(is_code(ORR_F64, 0, ORR_I64, wide), wide);
  }
}

}  // namespace
}  // namespace kernel_suite

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: cpu_code_test BLOCKS_PLUGIN AVX2_PLUGIN\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) orrery::Registry::get().add(argv[i]);
  return RUN_ALL_TESTS();
}
