// SPDX-License-Identifier: Apache-2.0
//
// Steps of the cuda plugin through its tables, on the fake driver: what one enqueues, and that the
// fake notices what a GPU would not forgive. Numbers are fake ones; the rules are CUDA's.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/kernel/compare.h"
#include "fake_step.h"

namespace {

using namespace fake_step;

// Calls that no step may make.
unsigned long long forbidden() {
  return calls({"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemFreeHost", "cuModuleLoadData",
                "cuModuleGetFunction", "cuStreamQuery", "cuEventQuery", "waiting copy"});
}

// Upload, product, line, download: all that a step has.
struct Chain {
  Chain() : first(product()), second(line()) { device(); }
  void fill(float shift) {
    for (int64_t i = 0; i < rows * inner; ++i) a.floats()[i] = static_cast<float>(i % 7) + shift;
    for (int64_t i = 0; i < inner * cols; ++i) b.floats()[i] = static_cast<float>(i % 5) - 2;
  }
  void enqueue() const {
    main.copy(da, a);
    main.copy(db, b);
    first.launch(main, {da.whole, db.whole}, dy);
    second.launch(main, {dy.whole}, dz);
    main.copy(z, dz);
  }
  void expect_result() const {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += a.floats()[i * inner + k] * b.floats()[k * cols + j];
        ASSERT_EQ(z.floats()[i * cols + j], 2 * sum + 1) << i << " " << j;
      }
  }
  Memory a{ORR_TIER_PINNED, 4 * rows*inner}, b{ORR_TIER_PINNED, 4 * inner*cols};
  Memory da{ORR_TIER_DEVICE, 4 * rows*inner}, db{ORR_TIER_DEVICE, 4 * inner*cols};
  Memory dy{ORR_TIER_DEVICE, 4 * rows*cols}, dz{ORR_TIER_DEVICE, 4 * rows*cols};
  Memory z{ORR_TIER_PINNED, 4 * rows* cols};
  Stream main;
  Kernel first, second;
};

TEST(FakeStep, NeitherAllocatesNorWaits) {
  Chain chain;
  chain.fill(0);
  const auto before = forbidden();
  for (int i = 0; i < 3; ++i) chain.enqueue();
  EXPECT_EQ(forbidden(), before);
  chain.main.finish();
  chain.expect_result();
}

TEST(FakeStep, RunsAgainAsOneGraph) {
  Chain chain;
  orr_graph* graph = nullptr;
  orrery::check(device().capture_begin(device().self, chain.main.stream));
  chain.enqueue();
  orrery::check(device().capture_end(device().self, chain.main.stream, &graph));
  for (float shift : {0.0f, 1.0f, 2.0f}) {
    chain.fill(shift);
    const auto before = forbidden() + calls({"cuLaunchKernel", "cublasLtMatmul", "cuMemcpyAsync"});
    orrery::check(device().graph_launch(device().self, graph, chain.main.stream));
    EXPECT_EQ(forbidden() + calls({"cuLaunchKernel", "cublasLtMatmul", "cuMemcpyAsync"}), before);
    chain.main.finish();
    chain.expect_result();
  }
  device().graph_destroy(device().self, graph);
}

TEST(FakeStep, AnotherStreamWaitsByEvents) {
  Chain chain;
  Stream beside;
  chain.fill(3);
  beside.copy(chain.da, chain.a);
  beside.copy(chain.db, chain.b);
  beside.record();
  orrery::check(device().stream_wait(device().self, chain.main.stream, beside.event));
  chain.first.launch(chain.main, {chain.da.whole, chain.db.whole}, chain.dy);
  chain.second.launch(chain.main, {chain.dy.whole}, chain.dz);
  chain.main.copy(chain.z, chain.dz);
  chain.main.finish();
  chain.expect_result();
}

// One compiled kernel on two streams, which the fake runs at once.
TEST(FakeStep, TwoStreamsLaunchOneKernel) {
  constexpr int64_t n = 1 << 18;
  device();
  Case wide = line();
  wide.in = wide.out = {tensor(ORR_F32, {n})};
  Kernel kernel(wide);
  Memory x{ORR_TIER_PINNED, 4 * n}, dx{ORR_TIER_DEVICE, 4 * n};
  Memory y{ORR_TIER_DEVICE, 4 * n}, z{ORR_TIER_DEVICE, 4 * n};
  Memory one{ORR_TIER_PINNED, 4 * n}, other{ORR_TIER_PINNED, 4 * n};
  Stream first, second;
  for (int64_t i = 0; i < n; ++i) x.floats()[i] = static_cast<float>(i % 1000);
  first.copy(dx, x);
  first.finish();
  for (int turn = 0; turn < 20; ++turn) {
    kernel.launch(first, {dx.whole}, y);
    kernel.launch(second, {dx.whole}, z);
    first.copy(one, y);
    second.copy(other, z);
    first.finish();
    second.finish();
    for (const Memory* found : {&one, &other})
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(found->floats()[i], 2 * x.floats()[i] + 1) << "element " << i;
  }
}

// x*1.1 + 0.3, then times x: fused or not, each result is one of 16 bits.
TEST(FakeOps, SixteenBitResultsRoundAfterEachInstruction) {
  for (int32_t dtype : {ORR_BF16, ORR_F16}) {
    Case c;
    c.kind = "pointwise";
    c.in = c.out = {tensor(dtype, {1025})};
    c.instrs = {{ORR_FN_INPUT, dtype, 0, 0, 0, 0, 0}, {ORR_FN_CONST, dtype, 0, 0, 0, 0, 1.1},
                {ORR_FN_MUL, dtype, 0, 1, 0, 0, 0},   {ORR_FN_CONST, dtype, 0, 0, 0, 0, 0.3},
                {ORR_FN_ADD, dtype, 2, 3, 0, 0, 0},   {ORR_FN_MUL, dtype, 4, 0, 0, 0, 0}};
    c.stored = {5};
    const auto inputs = kernel_suite::make_inputs(c, false, 1);
    EXPECT_EQ(kernel_suite::run("cuda", c, inputs).bits,
              kernel_suite::run("reference", c, inputs).bits);
  }
}

TEST(FakeOps, BadDataIsToldByTheNextWait) {
  Case c;
  c.kind = "cross_entropy";
  c.in = {tensor(ORR_F32, {3, 4}), tensor(ORR_I64, {3}), tensor(ORR_F32, {3})};
  c.out = {tensor(ORR_F32, {3}), tensor(ORR_F32, {3})};
  c.fills = {kernel_suite::normal(), kernel_suite::values({1, 99, 2}), kernel_suite::positive()};
  const auto result = kernel_suite::run("cuda", c, kernel_suite::make_inputs(c, false, 1));
  EXPECT_TRUE(result.late);
  EXPECT_EQ(result.error.rfind("a test: ", 0), 0u) << result.error;
  EXPECT_NE(result.error.find("label 99 in row 1"), std::string::npos) << result.error;
}

// Which operands of y = a b, [rows, 16] x [16, 301] in bf16, the library may load 16 bytes at a
// time. The rows of b and of y begin `step_b` and `step_y` elements apart.
std::string aligned(int64_t rows, int64_t step_b, int64_t step_y) {
  Case c;
  c.kind = "matmul";
  c.in = {tensor(ORR_BF16, {1, rows, 16}),
          kernel_suite::strided(ORR_BF16, {1, 16, 301}, {16 * step_b, step_b, 1})};
  c.out = {kernel_suite::strided(ORR_BF16, {1, rows, 301}, {rows * step_y, step_y, 1})};
  const auto inputs = kernel_suite::make_inputs(c, true, 1);
  // The library's a is our b.
  const std::pair<const char*, const char*> names[] = {
      {"a", "b aligned"}, {"b", "a aligned"}, {"y", "d aligned"}};
  unsigned long long before[3];
  for (int i = 0; i < 3; ++i) before[i] = calls({names[i].second});
  const auto result = kernel_suite::run("cuda", c, inputs);
  EXPECT_EQ(kernel_suite::trouble(result), "");
  c.out = {tensor(ORR_BF16, {1, rows, 301})};
  EXPECT_EQ(result.values, kernel_suite::run("reference", c, inputs).values);
  std::string found;
  for (int i = 0; i < 3; ++i)
    if (calls({names[i].second}) > before[i]) found += names[i].first;
  return found;
}

TEST(FakeOps, EachOperandHasItsOwnAlignment) {
  for (int64_t rows : {1, 5}) {  // one row has what many have
    EXPECT_EQ(aligned(rows, 301, 301), "a");
    EXPECT_EQ(aligned(rows, 320, 301), "ab");
    EXPECT_EQ(aligned(rows, 301, 320), "ay");
    EXPECT_EQ(aligned(rows, 320, 320), "aby");
  }
}

// Sums of leaves meet in the tree of the reference: three leaves of five, exact in small integers,
// and in the order of its nodes.
TEST(FakeOps, LeavesMeetInTheTree) {
  for (int64_t lo = 0; lo < 5; ++lo)
    for (int64_t n = 1; lo + n <= 5; ++n) {
      Case c = product();
      c.in = {tensor(ORR_BF16, {1, rows, 6 * n}), tensor(ORR_BF16, {1, 6 * n, cols})};
      const int64_t nodes = orr_tree_nodes(lo, lo + n, 5);
      c.out = {tensor(ORR_BF16, {nodes, rows, cols})};
      c.attrs = {kernel_suite::integer("leaf_lo", lo), kernel_suite::integer("leaf_n", n),
                 kernel_suite::integer("leaf_total", 5)};
      c.fills = {kernel_suite::integers(), kernel_suite::integers()};
      auto inputs = kernel_suite::make_inputs(c, true, 1);
      for (double& x : inputs[0]) x *= 37;  // sums that 16 bits round
      EXPECT_EQ(kernel_suite::run("cuda", c, inputs).bits,
                kernel_suite::run("reference", c, inputs).bits)
          << lo << " " << n;
    }
}

TEST(FakeStepDeathTest, AMissingWaitIsNamed) {
  EXPECT_DEATH(
      {
        Chain chain;
        Stream beside;
        for (int i = 0; i < 1000; ++i) {
          beside.copy(chain.da, chain.a);
          chain.first.launch(chain.main, {chain.da.whole, chain.db.whole}, chain.dy);
        }
      },
      "fake CUDA: memory overwritten in use");
}

TEST(FakeStepDeathTest, TheHostMayNotTouchDeviceMemory) {
  EXPECT_DEATH(
      {
        Memory memory(ORR_TIER_DEVICE, 64);
        std::memset(memory.memory->native, 0, 4);
      },
      "fake CUDA: host code touches device memory");
}

TEST(FakeStepDeathTest, NothingIsAllocatedInACapture) {
  EXPECT_DEATH(
      {
        Stream s;
        orrery::check(device().capture_begin(device().self, s.stream));
        Memory memory(ORR_TIER_DEVICE, 64);
      },
      "fake CUDA: call that a capture forbids: cuMemAlloc");
}

TEST(FakeStepDeathTest, NothingIsAskedInACapture) {
  EXPECT_DEATH(
      {
        Stream s;
        orrery::check(device().capture_begin(device().self, s.stream));
        s.finish();
      },
      "fake CUDA: call that a capture forbids: cuEventQuery");
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  return RUN_ALL_TESTS();
}
