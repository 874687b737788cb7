// SPDX-License-Identifier: Apache-2.0
//
// bench_matmul [threads] [seconds per cell] [text]: the cpu plugin's matmul against oneDNN and
// OpenBLAS, where they were found, at the shapes of GPT-2, char-GPT, an MLP and
// the convolutions of ResNet-18. The contestants
// take turns, so that a noisy machine is noisy for all; a cell is the best GFLOP/s of each. With a
// text only the lines that contain it.
#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "plugin/host.h"
#include "plugin/registry.h"
#include "run/thread_pool.h"

#ifdef HAVE_DNNL
#include <oneapi/dnnl/dnnl.hpp>
#endif
#ifdef HAVE_CBLAS
#include <cblas.h>
#endif

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A product as rows x out x in of a linear layer, and which of its three matmuls it is.
struct Product {
  const char* kind;
  int64_t m, n, k;
  bool a_t, b_t;
  int64_t leaves;
  int64_t images = 0, side = 0;  // a convolution: one operand is its windows
};

std::vector<Product> products(int64_t rows, int64_t out, int64_t in) {
  return {{"forward", rows, out, in, false, true, 1},
          {"dgrad", rows, in, out, false, false, 1},
          {"wgrad", out, in, rows, true, false, 1}};
}

// A convolution of 3 x 3 at every position of padded images.
std::vector<Product> convolution(int64_t images, int64_t side, int64_t in, int64_t out) {
  const int64_t rows = images * side * side;
  return {{"windows forward", rows, out, 9 * in, false, true, 1, images, side},
          {"windows wgrad", out, 9 * in, rows, true, false, 1, images, side}};
}

struct Arena {
  explicit Arena(int64_t floats) : data(size_t(floats + 16)) {
    memory.size = sizeof memory;
    memory.bytes = uint64_t(floats) * 4;
    memory.host = (void*)((uintptr_t(data.data()) + 63) & ~uintptr_t(63));
  }
  float* host() { return static_cast<float*>(memory.host); }
  orr_buffer buffer() const { return {&memory, 0, memory.bytes}; }

  std::vector<float> data;
  orr_memory memory{};
};

Arena random_arena(int64_t floats) {
  Arena a(floats);
  std::minstd_rand engine(7);
  for (int64_t i = 0; i < floats; ++i) a.host()[i] = float(engine()) / float(engine.max()) - 0.5f;
  return a;
}

orr_tensor matrix(int64_t rows, int64_t cols, bool transposed) {
  orr_tensor t{};
  t.dtype = ORR_F32, t.rank = 3;
  t.dims[0] = 1, t.dims[1] = rows, t.dims[2] = cols;
  t.strides[0] = rows * cols;
  t.strides[1] = transposed ? 1 : cols, t.strides[2] = transposed ? rows : 1;
  return t;
}

orr_tensor windows(const Product& p, int64_t columns) {
  const int64_t run = columns / 3, row = (p.side + 2) * run / 3, image = (p.side + 2) * row;
  orr_tensor t{};
  t.dtype = ORR_F32, t.rank = 6;
  const int64_t dims[] = {1, p.images, p.side, p.side, 3, run},
                strides[] = {0, image, row, run / 3, row, 1};
  std::copy(dims, dims + 6, t.dims), std::copy(strides, strides + 6, t.strides);
  return t;
}

using Run = std::function<void()>;

struct Contestant {
  const char* name;
  Run run;
};

Run own(const Product& p, Arena& a, Arena& b, Arena& y) {
  const orr_kernel_api& api = orrery::Registry::get().kernel("cpu");
  orr_tensor in[] = {matrix(p.m, p.k, p.a_t), matrix(p.k, p.n, p.b_t)},
             out = matrix(p.m, p.n, false);
  if (p.images) in[p.a_t] = windows(p, p.a_t ? p.n : p.k);
  orr_attr attrs[] = {{"leaf_n", ORR_ATTR_INT, 0, p.leaves, 0, nullptr, nullptr},
                      {"leaf_total", ORR_ATTR_INT, 0, p.leaves, 0, nullptr, nullptr}};
  orr_op op{sizeof(orr_op), 2, 1, 2, "matmul", in, &out, attrs, nullptr, "bench", nullptr};
  orr_kernel_size size{};
  orrery::check(api.measure(api.self, &op, &size));
  orr_kernel* kernel = nullptr;
  orrery::check(api.prepare(api.self, &op, &kernel));
  auto work = std::make_shared<Arena>(int64_t(size.workspace / 4 + 1));
  return [&api, kernel, work, &a, &b, &y] {
    orr_buffer ins[] = {a.buffer(), b.buffer()}, outs[] = {y.buffer()}, scratch = work->buffer();
    orrery::check(api.launch(kernel, nullptr, ins, outs, &scratch));
  };
}

#ifdef HAVE_DNNL
Run one_dnn(const Product& p, Arena& a, Arena& b, Arena& y) {
  using namespace dnnl;
  static engine cpu(engine::kind::cpu, 0);
  static stream queue(cpu);
  auto describe = [](int64_t rows, int64_t cols, bool t) {
    return memory::desc({rows, cols}, memory::data_type::f32,
                        t ? memory::dims{1, rows} : memory::dims{cols, 1});
  };
  auto da = describe(p.m, p.k, p.a_t), db = describe(p.k, p.n, p.b_t),
       dy = describe(p.m, p.n, false);
  matmul op(matmul::primitive_desc(matmul::desc(da, db, dy), cpu));
  std::unordered_map<int, memory> args = {{DNNL_ARG_SRC, memory(da, cpu, a.host())},
                                          {DNNL_ARG_WEIGHTS, memory(db, cpu, b.host())},
                                          {DNNL_ARG_DST, memory(dy, cpu, y.host())}};
  return [op, args] {
    op.execute(queue, args);
    queue.wait();
  };
}
#endif

#ifdef HAVE_CBLAS
Run open_blas(const Product& p, Arena& a, Arena& b, Arena& y) {
  return [p, &a, &b, &y] {
    cblas_sgemm(CblasRowMajor, p.a_t ? CblasTrans : CblasNoTrans, p.b_t ? CblasTrans : CblasNoTrans,
                int(p.m), int(p.n), int(p.k), 1.0f, a.host(), int(p.a_t ? p.m : p.k), b.host(),
                int(p.b_t ? p.k : p.n), 0.0f, y.host(), int(p.n));
  };
}
#endif

// Best seconds per run. A turn waits until the last contestant's threads sleep, then warms up.
double turn(const Run& run, double flop) {
  usleep(3000);
  int count = flop > 2e9 ? 2 : flop > 1e8 ? 6 : 60;
  double best = 1e9;
  for (int i = 0; i < count + 2; ++i) {
    double start = now();
    run();
    if (i >= 2 || flop > 1e10) best = std::min(best, now() - start);
  }
  return best;
}

// Every register chain busy: what the multiply-add units can do.
__attribute__((target("avx512f"))) double fma_rate_512() {
  typedef float V __attribute__((vector_size(64)));
  V x[16] = {};
  constexpr int64_t count = 4000000;
  V m = x[0] + 0.5f;
  double start = now();
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 16; ++j) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(x[j]) : "v"(m));
  }
  return 16.0 * 32 * double(count) / (now() - start) / 1e9;
}
__attribute__((target("avx2,fma"))) double fma_rate_256() {
  typedef float V __attribute__((vector_size(32)));
  V x[12] = {};
  constexpr int64_t count = 8000000;
  V m = x[0] + 0.5f;
  double start = now();
  for (int64_t i = 0; i < count; ++i) {
#pragma GCC unroll 12
    for (int j = 0; j < 12; ++j) asm volatile("vfmadd231ps %1, %1, %0" : "+v"(x[j]) : "v"(m));
  }
  return 12.0 * 16 * double(count) / (now() - start) / 1e9;
}
double peak(int threads) {
  std::vector<double> rate(threads);
  std::vector<std::thread> pool;
  for (int i = 0; i < threads; ++i)
    pool.emplace_back([&rate, i] {
      for (int r = 0; r < 5; ++r)
        rate[i] =
            std::max(rate[i], __builtin_cpu_supports("avx512f") ? fma_rate_512() : fma_rate_256());
    });
  double sum = 0;
  for (int i = 0; i < threads; ++i) pool[i].join(), sum += rate[i];
  return sum;
}

void compare(const Product& p, double seconds, const std::string& only) {
  char line[64];
  std::snprintf(line, sizeof line, "%ld x %ld x %ld %s", long(p.m), long(p.n), long(p.k), p.kind);
  if (std::string(line).find(only) == std::string::npos) return;
  Arena a = random_arena(p.m * p.k), b = random_arena(p.k * p.n), y(p.m * p.n);
  std::vector<Contestant> all = {{"own", own(p, a, b, y)}};
#ifdef HAVE_DNNL
  if (p.leaves == 1 && !p.images) all.push_back({"oneDNN", one_dnn(p, a, b, y)});
#endif
#ifdef HAVE_CBLAS
  if (p.leaves == 1 && !p.images) all.push_back({"OpenBLAS", open_blas(p, a, b, y)});
#endif
  double flop = 2.0 * double(p.m) * double(p.n) * double(p.k), end = now() + seconds;
  std::vector<double> best(all.size(), 1e9);
  do {
    for (size_t i = 0; i < all.size(); ++i) best[i] = std::min(best[i], turn(all[i].run, flop));
  } while (now() < end);
  double rival = 1e9;
  std::printf("%-28s", line);
  for (size_t i = 0; i < all.size(); ++i) {
    std::printf("  %s %6.1f", all[i].name, flop / best[i] / 1e9);
    if (i) rival = std::min(rival, best[i]);
  }
  if (p.leaves > 1) std::printf("  (%ld leaves)", long(p.leaves));
  if (rival < 1e9) std::printf("  ratio %.2f", rival / best[0]);
  std::printf("\n");
  std::fflush(stdout);
}

// Libraries read these when they are loaded, so the program starts itself anew.
void set_environment(int threads, char** argv) {
  if (std::getenv("OMP_WAIT_POLICY")) return;
  std::string count = std::to_string(threads);
  setenv("OMP_WAIT_POLICY", "passive", 1);
  setenv("OMP_NUM_THREADS", count.c_str(), 1);
  setenv("OPENBLAS_NUM_THREADS", count.c_str(), 1);
  if (__builtin_cpu_supports("avx512f")) setenv("OPENBLAS_CORETYPE", "SKYLAKEX", 0);
  execv("/proc/self/exe", argv);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : int(std::thread::hardware_concurrency());
  double seconds = argc > 2 ? std::atof(argv[2]) : 0.5;
  std::string only = argc > 3 ? argv[3] : "";
  set_environment(threads, argv);
  orrery::ThreadPool::get().configure(threads);
  std::printf("%d threads, multiply-add peak %.1f GFLOP/s\n", threads, peak(threads));
  const int64_t layers[][3] = {
      {256, 2304, 768}, {256, 768, 768},  {256, 3072, 768}, {256, 768, 3072}, {256, 50257, 768},
      {768, 128, 128},  {768, 384, 128},  {768, 512, 128},  {128, 512, 784},  {128, 10, 512},
      {32, 2048, 512},  {32768, 64, 576}, {2048, 2048, 256}};
  for (auto& l : layers)
    for (const Product& p : products(l[0], l[1], l[2])) compare(p, seconds, only);
  for (auto& l : {layers[0], layers[3], layers[4]}) {
    Product p = products(l[0], l[1], l[2])[2];
    p.leaves = 4;
    compare(p, seconds, only);
  }
  const int64_t stages[][3] = {{32, 64, 64}, {16, 128, 128}, {8, 256, 256}, {4, 512, 512}};
  for (auto& c : stages)
    for (const Product& p : convolution(32, c[0], c[1], c[2])) compare(p, seconds, only);
  for (bool b_t : {true, false}) compare({"vector", 1, 2304, 768, false, b_t, 1}, seconds, only);
  return 0;
}
