// SPDX-License-Identifier: Apache-2.0
//
// A step by hand through the cuda plugin's tables, on the fake driver.
#pragma once

#include <dlfcn.h>

#include <optional>

#include "conformance/kernel/device.h"
#include "conformance/kernel/harness.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace fake_step {

using kernel_suite::AbiOp;
using kernel_suite::Case;
using kernel_suite::tensor;

// Opened once for the process, by the suite.
inline const orr_device_api& device() {
  kernel_suite::Device::of(orrery::Registry::get().kernel("cuda"));
  return orrery::Registry::get().device("cuda");
}

// How often these functions of the fakes were called.
inline unsigned long long calls(std::initializer_list<const char*> names) {
  using Calls = unsigned long long(const char*);
  static auto* const count = reinterpret_cast<Calls*>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "fake_cuda_calls"));
  unsigned long long sum = 0;
  for (const char* name : names) sum += count(name);
  return sum;
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
    launch(s, std::move(in), out.whole);
  }
  void launch(const Stream& s, std::vector<orr_buffer> in, const orr_buffer& out) const {
    orrery::check(
        api.launch(kernel, s.stream, in.data(), &out, workspace ? &workspace->whole : nullptr));
  }
  const orr_kernel_api& api = orrery::Registry::get().kernel("cuda");
  AbiOp op;
  std::optional<Memory> workspace;
  orr_kernel* kernel = nullptr;
};

inline constexpr int64_t rows = 8, inner = 16, cols = 12;

inline Case product(int64_t m = rows, int64_t k = inner, int64_t n = cols) {
  Case c;
  c.kind = "matmul";
  c.in = {tensor(ORR_F32, {1, m, k}), tensor(ORR_F32, {1, k, n})};
  c.out = {tensor(ORR_F32, {1, m, n})};
  return c;
}

// y = 2x + 1.
inline Case line() {
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

}  // namespace fake_step
