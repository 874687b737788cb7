// SPDX-License-Identifier: Apache-2.0
//
// Steps of the cuda plugin through its tables, on the fake driver: what one enqueues, and that the
// fake notices what a GPU would not forgive. Numbers are fake ones; the rules are CUDA's.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "check/kernel/device.h"
#include "check/kernel/harness.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace {

using kernel_suite::AbiOp;
using kernel_suite::Case;
using kernel_suite::tensor;

// Opened once for the process, by the suite.
const orr_device_api& device() {
  kernel_suite::Device::of(orrery::Registry::get().kernel("cuda"));
  return orrery::Registry::get().device("cuda");
}

// How often the fake's functions that no step may call were called.
unsigned long long calls(std::initializer_list<const char*> names) {
  using Calls = unsigned long long(const char*);
  static auto* const count = reinterpret_cast<Calls*>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "fake_cuda_calls"));
  unsigned long long sum = 0;
  for (const char* name : names) sum += count(name);
  return sum;
}
unsigned long long forbidden() {
  return calls({"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemFreeHost", "cuModuleLoadData",
                "cuModuleGetFunction", "cuStreamQuery", "cuEventQuery", "waiting copy"});
}

struct Memory {
  Memory(int32_t tier, uint64_t bytes) {
    orrery::check(device().allocate(device().self, tier, bytes, &memory));
    whole = {memory, 0, bytes};
  }
  ~Memory() { device().free(device().self, memory); }
  Memory(const Memory&) = delete;
  float* floats() const { return static_cast<float*>(memory->host); }
  orr_memory* memory = nullptr;
  orr_buffer whole{};
};

struct Stream {
  Stream() {
    orrery::check(device().stream_create(device().self, &stream));
    orrery::check(device().event_create(device().self, &event));
  }
  ~Stream() {
    device().event_destroy(device().self, event);
    device().stream_destroy(device().self, stream);
  }
  Stream(const Stream&) = delete;
  void copy(const Memory& to, const Memory& from) const {
    orrery::check(device().copy(device().self, stream, &to.whole, &from.whole));
  }
  void record() const { orrery::check(device().event_record(device().self, event, stream)); }
  void finish() const {
    record();
    orrery::check(device().event_sync(device().self, event, 20'000'000'000));
  }
  orr_stream* stream = nullptr;
  orr_event* event = nullptr;
};

struct Kernel {
  explicit Kernel(const Case& c) : op(c) {
    orr_kernel_size size{};
    orrery::check(api.measure(api.self, &op.op, &size));
    if (size.workspace) workspace.emplace(ORR_TIER_DEVICE, size.workspace);
    orrery::check(api.prepare(api.self, &op.op, &kernel));
  }
  ~Kernel() { api.release(api.self, kernel); }
  Kernel(const Kernel&) = delete;
  void launch(const Stream& s, std::vector<orr_buffer> in, const Memory& out) const {
    orrery::check(api.launch(kernel, s.stream, in.data(), &out.whole,
                             workspace ? &workspace->whole : nullptr));
  }
  const orr_kernel_api& api = orrery::Registry::get().kernel("cuda");
  AbiOp op;
  std::optional<Memory> workspace;
  orr_kernel* kernel = nullptr;
};

constexpr int64_t rows = 8, inner = 16, cols = 12;

Case product() {
  Case c;
  c.kind = "matmul";
  c.in = {tensor(ORR_F32, {1, rows, inner}), tensor(ORR_F32, {1, inner, cols})};
  c.out = {tensor(ORR_F32, {1, rows, cols})};
  return c;
}

// y = 2x + 1.
Case line() {
  Case c;
  c.kind = "pointwise";
  c.in = c.out = {tensor(ORR_F32, {rows * cols})};
  c.instrs = {{ORR_FN_INPUT, ORR_F32, 0, 0, 0, 0, 0},
              {ORR_FN_CONST, ORR_F32, 0, 0, 0, 0, 2},
              {ORR_FN_CONST, ORR_F32, 0, 0, 0, 0, 1},
              {ORR_FN_FMA, ORR_F32, 0, 1, 2, 0, 0}};
  c.stored = {3};
  return c;
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
