// SPDX-License-Identifier: Apache-2.0
//
// Runs ops of the cpu kernels on a chosen instruction set and number of threads, without a plugin
// or a pool: the tasks run one after another, last first, so that a test sees any dependence on
// order.
#pragma once

#include <orrery/sdk/plugin.hpp>

#include <cstring>
#include <memory>
#include <vector>

#include "kernel.h"

namespace orr_cpu::avx2 {
Kernel* make_matmul(const orr_op&);
}
namespace orr_cpu::avx512 {
Kernel* make_matmul(const orr_op&);
}

namespace orr_test {

using Make = orr_cpu::Kernel* (*)(const orr_op&);

inline int thread_count = 1;

inline void use_serial_host() {
  static orr_host table{};
  table.size = sizeof table;
  table.parallel_for = [](int64_t n, void (*fn)(void*, int64_t), void* arg) {
    for (int64_t i = n; i-- > 0;) fn(arg, i);
  };
  table.threads = [] { return int32_t(thread_count); };
  orr::host = &table;
}

inline bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

inline orr_tensor tensor(int32_t dtype, std::vector<int64_t> dims,
                         std::vector<int64_t> strides = {}) {
  orr_tensor t{};
  t.dtype = dtype, t.rank = int32_t(dims.size());
  int64_t step = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    t.dims[i] = dims[i];
    t.strides[i] = strides.empty() ? step : strides[i];
    step *= dims[i];
  }
  return t;
}

// Memory with a guard behind it that must stay as it was.
struct Bytes {
  explicit Bytes(uint64_t n, bool on_a_line = false) : size(n), store(n + 64 + 80, 0x5a) {
    if (on_a_line) begin = 64 - reinterpret_cast<uintptr_t>(store.data()) % 64;
    memory.size = sizeof memory, memory.bytes = n, memory.host = data();
  }
  bool intact() const {
    for (uint64_t i = 0; i < 64; ++i)
      if (store[begin + size + i] != 0x5a) return false;
    return true;
  }
  orr_buffer buffer() const { return {&memory, 0, size}; }
  void* data() { return store.data() + begin; }

  uint64_t size, begin = 16;
  std::vector<unsigned char> store;
  orr_memory memory{};
};

struct Attributes {
  std::vector<orr_attr> list;
  Attributes& add(const char* name, int64_t value) {
    list.push_back({name, ORR_ATTR_INT, 0, value, 0, nullptr, nullptr});
    return *this;
  }
  Attributes& add_text(const char* name, const char* value) {
    list.push_back({name, ORR_ATTR_TEXT, 0, 0, 0, value, nullptr});
    return *this;
  }
  Attributes& add_real(const char* name, double value) {
    list.push_back({name, ORR_ATTR_REAL, 0, 0, value, nullptr, nullptr});
    return *this;
  }
};

// Prepares, measures and launches; returns whether the scratch stayed within its bounds.
inline bool run(Make make, const orr_op& op, uint64_t scratch, std::vector<Bytes*> in,
                std::vector<Bytes*> out) {
  std::vector<orr_buffer> ins, outs;
  for (Bytes* b : in) ins.push_back(b->buffer());
  for (Bytes* b : out) outs.push_back(b->buffer());
  Bytes work(scratch);
  orr_buffer work_buffer = work.buffer();
  std::unique_ptr<orr_cpu::Kernel>(make(op))->launch(ins.data(), outs.data(), &work_buffer);
  bool intact = work.intact();
  for (Bytes* b : out) intact = intact && b->intact();
  return intact;
}

}  // namespace orr_test
