// SPDX-License-Identifier: Apache-2.0
//
// See bench_ops.h.
#include "bench_ops.h"

#include <algorithm>
#include <limits>

#include "plugin/host.h"
#include "plugin/registry.h"

namespace bench {

orr_tensor tensor(int32_t dtype, std::vector<int64_t> dims) {
  orr_tensor t{dtype, int32_t(dims.size()), {}, {}};
  int64_t stride = 1;
  for (int d = t.rank - 1; d >= 0; --d) {
    t.dims[d] = dims[size_t(d)];
    t.strides[d] = stride;
    stride *= t.dims[d];
  }
  return t;
}

namespace {

uint64_t bytes_of(const orr_tensor& t) {
  int64_t last = 0;
  for (int d = 0; d < t.rank; ++d) last += (t.dims[d] - 1) * t.strides[d];
  return uint64_t((last + 1) * orr_dtype_bytes(t.dtype));
}

void fill(const orr_tensor& t, void* p) {
  int64_t n = int64_t(bytes_of(t)) / orr_dtype_bytes(t.dtype);
  for (int64_t i = 0; i < n; ++i) {
    auto bits = uint32_t(i * 2654435761u) >> 8;
    if (t.dtype == ORR_F32) static_cast<float*>(p)[i] = float(bits % 4096) / 2048.0f - 0.9f;
    if (t.dtype == ORR_BF16) static_cast<uint16_t*>(p)[i] = uint16_t(0x3f00 + bits % 256);
    if (t.dtype == ORR_I64) static_cast<int64_t*>(p)[i] = bits % 1000;
  }
}

}  // namespace

Bench::Bench(const std::string& plugin, std::string kind, std::vector<orr_tensor> in,
             std::vector<orr_tensor> out, std::vector<orr_attr> attrs, const orr_expr* expr)
    : api_(orrery::Registry::get().kernel(plugin)) {
  orr_op op{sizeof(orr_op),
            int32_t(in.size()),
            int32_t(out.size()),
            int32_t(attrs.size()),
            kind.c_str(),
            in.data(),
            out.data(),
            attrs.data(),
            expr,
            "bench",
            nullptr};
  orr_kernel_size size{};
  orrery::check(api_.measure(api_.self, &op, &size));
  orrery::check(api_.prepare(api_.self, &op, &kernel_));
  for (const orr_tensor& t : in) {
    inputs_.push_back(buffer(bytes_of(t)));
    fill(t, inputs_.back().memory->host);
  }
  for (const orr_tensor& t : out) outputs_.push_back(buffer(bytes_of(t)));
  workspace_ = buffer(std::max<uint64_t>(64, size.workspace));
}

Bench::~Bench() {
  api_.release(api_.self, kernel_);
  const orr_device_api& device = orrery::Registry::get().device("host");
  for (orr_memory* m : memory_) device.free(device.self, m);
}

orr_buffer Bench::buffer(uint64_t bytes) {
  const orr_device_api& device = orrery::Registry::get().device("host");
  orr_memory* memory = nullptr;
  orrery::check(device.allocate(device.self, ORR_TIER_HOST, bytes, &memory));
  memory_.push_back(memory);
  return {memory, 0, bytes};
}

void Bench::launch() {
  orrery::check(api_.launch(kernel_, nullptr, inputs_.data(), outputs_.data(), &workspace_));
}

std::vector<double> best_of(int rounds, const std::vector<std::function<void()>>& candidates) {
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
  for (int r = 0; r < rounds; ++r)
    for (size_t i = 0; i < candidates.size(); ++i) {
      auto start = std::chrono::steady_clock::now();
      candidates[i]();
      std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      best[i] = std::min(best[i], took.count());
    }
  return best;
}

}  // namespace bench
