// SPDX-License-Identifier: Apache-2.0
//
// Pointwise expressions as machine code give the bits of the block machine: random expressions on
// the cpu plugin and on the plugin "cpu-blocks", which is refused executable memory and named on
// the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>

#include "conformance/kernel/harness.h"
#include "plugin/registry.h"
#include "pointwise_code.h"

namespace kernel_suite {
namespace {

using orr_cpu::pointwise::Isa;

const Values& hard_numbers() {
  static const Values all = {0.0,   -0.0, NAN,   HUGE_VAL, -HUGE_VAL, 1e-40, -1e-45, 1e-20, 3e38,
                             -1e19, 88.8, -87.5, 0.62,     -0.93,     16.0,  1.0,    -1.0,  0.5};
  return all;
}

struct Random {
  std::mt19937 generator;
  int below(size_t n) { return int(generator() % n); }
  template <class T>
  T of(const std::vector<T>& all) {
    return all[size_t(below(all.size()))];
  }
};

// An expression that grows by random instructions on what is there already.
struct Grower {
  Random random;
  Case c;
  std::vector<int> reals, masks;  // registers
  int32_t dtype;
  std::vector<int64_t> dims;

  explicit Grower(uint32_t seed) : random{std::mt19937(seed)} {
    c.kind = "pointwise";
    c.note = "random" + std::to_string(seed);
    dtype = random.of<int32_t>({ORR_F32, ORR_F32, ORR_F32, ORR_BF16, ORR_F16});
    dims = random.of<std::vector<int64_t>>(
        {{1}, {63}, {1024}, {2117}, {40000}, {5, 31}, {3, 531}, {7, 64}, {2, 3, 640}});
    const int inputs = 1 + random.below(5), steps = 1 + random.below(40);
    for (int i = 0; i < inputs; ++i) input(i == 0);
    for (int i = 0; i < steps; ++i) step();
    const int outputs = 1 + random.below(4);
    for (int i = 0; i < outputs; ++i) output();
  }

  int add(int32_t fn, int32_t type, int a = 0, int b = 0, int d = 0, double imm = 0) {
    c.instrs.push_back({fn, type, a, b, d, 0, imm});
    return int(c.instrs.size()) - 1;
  }
  int real() { return random.of(reals); }

  // Whole, a row, a column, a scalar or with rows that lie apart.
  void input(bool whole) {
    const int32_t type = random.below(4) ? dtype : int32_t(ORR_F32);
    orr_tensor t = tensor(type, dims);
    const int last = t.rank - 1, layout = whole ? 0 : random.below(7);
    for (int d = 0; d < t.rank; ++d) {
      if ((layout == 1 && d < last) || (layout == 2 && d == last) || layout == 3) t.strides[d] = 0;
      if (layout == 4) t.strides[d] *= 2;
    }
    Values v;
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < elements(t); ++i)
      v.push_back(random.below(5) ? 3 * normal(random.generator) : random.of(hard_numbers()));
    c.in.push_back(t);
    c.fills.push_back(values(v));
    const int r = add(ORR_FN_INPUT, type, int(c.in.size()) - 1);
    reals.push_back(type == dtype ? r : add(ORR_FN_CAST, dtype, r));
  }

  void step() {
    const int kind = random.below(12);
    if (kind == 0) {
      reals.push_back(add(ORR_FN_CONST, dtype, 0, 0, 0, rounded(dtype, random.of(hard_numbers()))));
    } else if (kind < 5) {
      const int fn = random.of<int>(
          {ORR_FN_ADD, ORR_FN_SUB, ORR_FN_MUL, ORR_FN_DIV, ORR_FN_MIN, ORR_FN_MAX, ORR_FN_MOD});
      reals.push_back(add(fn, dtype, real(), real()));
    } else if (kind < 8) {
      int fn = ORR_FN_NEG + random.below(ORR_FN_GELU_GRAD - ORR_FN_NEG + 1);
      if (fn == ORR_FN_SIN || fn == ORR_FN_COS) fn = ORR_FN_GELU;  // the block machine's own
      reals.push_back(add(fn, dtype, real()));
    } else if (kind == 8) {
      reals.push_back(add(ORR_FN_FMA, dtype, real(), real(), real()));
    } else if (kind == 9 && !masks.empty()) {
      reals.push_back(add(ORR_FN_SELECT, dtype, random.of(masks), real(), real()));
    } else {
      logic();
    }
  }
  void logic() {
    const int kind = random.below(3);
    if (kind == 0 && masks.size() > 1)
      masks.push_back(add(random.of<int>({ORR_FN_AND, ORR_FN_OR, ORR_FN_EQ, ORR_FN_NE}), ORR_BOOL,
                          random.of(masks), random.of(masks)));
    else if (kind == 1)
      masks.push_back(add(ORR_FN_ISFINITE, ORR_BOOL, real()));
    else
      masks.push_back(add(ORR_FN_EQ + random.below(6), ORR_BOOL, real(), real()));
    if (random.below(3) == 0) masks.back() = add(ORR_FN_NOT, ORR_BOOL, masks.back());
    if (random.below(3) == 0) reals.push_back(add(ORR_FN_CAST, dtype, masks.back()));
  }

  void output() {
    int r = random.below(3) ? reals.back() : real();
    const int32_t type = random.below(4) ? dtype : int32_t(ORR_F32);
    if (type != dtype) r = add(ORR_FN_CAST, type, r);
    c.stored.push_back(r);
    c.out.push_back(tensor(type, dims));
  }
};

Case random_case(uint32_t seed) { return Grower(seed).c; }

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
  for (uint32_t seed = 0; seed < 2; ++seed) bits_on("cpu-blocks", random_case(seed), 0);
  const std::string log = testing::internal::GetCapturedStdout();
  const std::string warning = "cpu: the system refuses executable memory (Invalid argument)";
  EXPECT_NE(log.find(warning), std::string::npos) << log;
  EXPECT_EQ(log.find(warning), log.rfind(warning)) << log;
}

TEST(CpuCode, GivesTheBitsOfTheBlockMachine) {
  for (uint32_t seed = 0; seed < kExpressions; ++seed) {
    const Case c = random_case(seed);
    const auto want = bits_on("cpu-blocks", c, 0);
    for (int32_t inplace = 0; inplace <= (fits_in_place(c) ? 1 : 0); ++inplace)
      EXPECT_EQ(difference(c, bits_on("cpu", c, inplace), want), "")
          << "seed " << seed << ", in place " << inplace;
  }
}

// With AVX-512, code can be made anywhere.
TEST(CpuCode, IsMadeOfEveryExpressionForBothInstructionSets) {
  int spilling = 0;
  for (uint32_t seed = 0; seed < kExpressions; ++seed) {
    const Case c = random_case(seed);
    const AbiOp abi(c);
    const auto compiled = orr_cpu::pointwise::compile(abi.op);
    for (const Isa& isa : {Isa{nullptr, 64, false}, Isa{nullptr, 128, true}}) {
      const auto code = orr_cpu::pointwise::translate(compiled, isa.block * 4 + 64, isa);
      EXPECT_FALSE(code.bytes.empty()) << "seed " << seed;
      spilling += code.spill_bytes > 0;
    }
  }
  EXPECT_GT(spilling, 20);
}

TEST(CpuCode, LeavesOtherStepsToTheBlockMachine) {
  Case c{"pointwise", "sin", {tensor(ORR_F32, {64})}, {tensor(ORR_F32, {64})}};
  c.instrs = {{ORR_FN_INPUT, ORR_F32, 0, 0, 0, 0, 0}, {ORR_FN_SIN, ORR_F32, 0, 0, 0, 0, 0}};
  c.stored = {1};
  const AbiOp abi(c);
  const auto compiled = orr_cpu::pointwise::compile(abi.op);
  EXPECT_TRUE(orr_cpu::pointwise::translate(compiled, 320, {nullptr, 64, false}).bytes.empty());
}

}  // namespace
}  // namespace kernel_suite

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: cpu_code_test PLUGIN\n");
    return 2;
  }
  orrery::Registry::get().add(argv[1]);
  return RUN_ALL_TESTS();
}
