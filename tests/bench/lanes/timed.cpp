// SPDX-License-Identifier: Apache-2.0
//
// The kernel plugin "timed": every op is its time and nothing else. A product waits as long as its
// FLOPs take at TIMED_FLOPS of them a second, all other ops take no time, and no result is written.
// So the exchanges of many ranks can be timed on few CPUs.
#include <time.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <orrery/sdk/plugin.hpp>

struct orr_kernel {
  double seconds;
};

namespace {

double elements(const orr_tensor& t) {
  double count = 1;
  for (int i = 0; i < t.rank; ++i) count *= static_cast<double>(t.dims[i]);
  return count;
}

// 2 m n k of a product of [m, k] and [k, n]: what the three sizes multiply to is its square.
double flops(const orr_op& op) {
  if (std::string_view(op.kind).substr(0, 6) != "matmul") return 0;
  return 2 * std::sqrt(elements(op.in[0]) * elements(op.in[1]) * elements(op.out[0]));
}

int32_t probe(void*, char*, uint32_t) { return 1; }

void supports(void*, const orr_op*, orr_support* out) {
  out->score = 1000;
  orr::copy_text(out->numerics, "timed");
  out->strided_in = out->strided_out = ~0u;
}

orr_status* measure(void*, const orr_op*, orr_kernel_size*) { return nullptr; }

orr_status* prepare(void*, const orr_op* op, orr_kernel** out) {
  return orr::guard([&] {
    const char* rate = std::getenv("TIMED_FLOPS");
    if (!rate || std::atof(rate) <= 0)
      throw orr::Error(ORR_INVALID, "timed: set TIMED_FLOPS to FLOPs a second, such as 2e10");
    *out = std::make_unique<orr_kernel>(flops(*op) / std::atof(rate)).release();
  });
}

void release(void*, orr_kernel* kernel) { std::unique_ptr<orr_kernel>{kernel}; }

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Short waits are saved up, for a thread wakes late: what it overslept is taken from the next.
orr_status* launch(orr_kernel* kernel, orr_stream*, const orr_buffer*, const orr_buffer*,
                   const orr_buffer*) {
  thread_local double owed = 0;
  owed += kernel->seconds;
  if (owed < 1e-3) return nullptr;
  const double start = now();
  const auto nanoseconds = static_cast<long>(owed * 1e9);
  const timespec wait = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
  owed -= now() - start;
  return nullptr;
}

const orr_kernel_api table = {sizeof(orr_kernel_api),
                              nullptr,
                              "host",
                              probe,
                              supports,
                              measure,
                              prepare,
                              release,
                              launch,
                              nullptr};

const void* get_table(void*, const char* id, uint32_t version) {
  return std::string_view(id) == "kernel" && version == 1 ? &table : nullptr;
}

orr_status* entry(const orr_bootstrap* boot, orr_exports* out) {
  orr::attach(boot);
  *out = {sizeof(*out), nullptr, get_table, nullptr};
  return nullptr;
}

}  // namespace

ORR_PLUGIN(ORR_KIND_KERNEL, "timed", "1.0.0", "Waits in place of arithmetic", entry, 1,
           {{"kernel", 1, 1}})
