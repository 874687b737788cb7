// SPDX-License-Identifier: Apache-2.0
//
// See machine_rates.h.
#include "machine_rates.h"

#include <sys/mman.h>
#include <orrery/sdk/plugin.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace orr_cpu {
namespace {

constexpr int kTurns = 2;
constexpr int64_t kRows = 256, kCols = 768, kInner = 768;
constexpr int64_t kStream = 64 << 20, kPart = 1 << 20;  // bytes

// Takes the line of memory out of all caches; `all_flushed` waits until that is done.
#ifdef __x86_64__
void flush_line(const char* p) { __builtin_ia32_clflush(p); }
void all_flushed() { __builtin_ia32_mfence(); }
#else
void flush_line(const char* p) { asm volatile("dc civac, %0" ::"r"(p) : "memory"); }
void all_flushed() { asm volatile("dsb sy" ::: "memory"); }
#endif

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The least of several turns. `before` is not timed.
double best_of(const std::function<void()>& before, const std::function<void()>& work) {
  double best = 1e9;
  for (int turn = 0; turn < kTurns; ++turn) {
    before();
    best = std::min(best, seconds_of(work));
  }
  return best;
}

orr_tensor matrix(int32_t dtype, int64_t rows, int64_t cols) {
  return {dtype, 3, {1, rows, cols}, {rows * cols, cols, 1}};
}

// A matmul of the plugin with memory of its own, all of it zeros.
class Matmul {
 public:
  explicit Matmul(const Product& p)
      : in_{matrix(p.dtype, kRows, kInner), matrix(p.dtype, kInner, kCols)},
        out_(matrix(p.dtype, kRows, kCols)) {
    numerics_.name = "numerics", numerics_.type = ORR_ATTR_TEXT, numerics_.text = "fast";
    const orr_op op = {sizeof op, 2,          1,       p.fast ? 1 : 0, "matmul", in_,
                       &out_,     &numerics_, nullptr, "machine",      nullptr};
    const Op* row = std::find_if(op_table, op_table + op_count,
                                 [](const Op& o) { return !std::strcmp(o.kind, "matmul"); });
    kernel_.reset(row->make[p.isa](op));
    for (const orr_tensor& t : {in_[0], in_[1], out_})
      add(orr::elements(t) * orr_dtype_bytes(t.dtype));
    add(int64_t(row->workspace(op)));
  }

  void launch() { kernel_->launch(&buffers_[0], &buffers_[2], &buffers_[3]); }
  void flush() const {
    for (const std::vector<char>& m : bytes_)
      for (size_t i = 0; i < m.size(); i += 64) flush_line(&m[i]);
    all_flushed();
  }

 private:
  void add(int64_t bytes) {
    bytes_.emplace_back(size_t(bytes) + 64);
    memory_.push_back(std::make_unique<orr_memory>());
    memory_.back()->host = bytes_.back().data();
    buffers_.push_back({memory_.back().get(), 0, uint64_t(bytes)});
  }

  orr_tensor in_[2], out_;
  orr_attr numerics_{};
  std::unique_ptr<Kernel> kernel_;
  std::vector<std::vector<char>> bytes_;
  std::vector<std::unique_ptr<orr_memory>> memory_;
  std::vector<orr_buffer> buffers_;
};

uint64_t sum_of(const char* from, int64_t bytes) {
  uint64_t sum[8] = {};
  for (int64_t i = 0; i < bytes; i += 64)
    for (int j = 0; j < 8; ++j) sum[j] += ((const uint64_t*)(from + i))[j];
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

}  // namespace

double rate_of(const Product& product) {
  Matmul m(product);
  const auto before = [&] {
    if (product.cold) m.flush();
  };
  const double best = best_of(before, [&] { m.launch(); });
  return 2.0 * double(kRows) * double(kCols) * double(kInner) / best;
}

double read_bandwidth() {
  void* memory =
      mmap(nullptr, size_t(kStream), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail(ORR_UNAVAILABLE, "no 64 MiB to measure the memory's speed with");
  madvise(memory, size_t(kStream), MADV_HUGEPAGE);
  struct Reader {
    char* memory;
    uint64_t sums[kStream / kPart];
  } reader = {static_cast<char*>(memory), {}};
  const auto each = [&](void (*fn)(void*, int64_t)) { parallel_for(kStream / kPart, fn, &reader); };
  each([](void* r, int64_t i) {
    std::memset(static_cast<Reader*>(r)->memory + i * kPart, 1, kPart);
  });
  const double best = best_of([] {},
                              [&] {
                                each([](void* r, int64_t i) {
                                  auto& all = *static_cast<Reader*>(r);
                                  all.sums[i] = sum_of(all.memory + i * kPart, kPart);
                                });
                              });
  munmap(memory, size_t(kStream));
  return double(kStream) / best;
}

}  // namespace orr_cpu
