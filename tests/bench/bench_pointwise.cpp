// SPDX-License-Identifier: Apache-2.0
//
// The cpu plugin's pointwise machine against hand-written fused loops, and its row ops against the
// memory's speed. Prints one line per op: time, bytes moved per second, ratio to the loop.
#include <orrery/kernel.h>

#include <cstdio>
#include <cstdlib>

#include "bench_ops.h"
#include "fused_loops.h"
#include "run/thread_pool.h"

namespace {

using bench::Bench;
using bench::tensor;

// Expressions are written as on paper; every value is f32.
struct Expression {
  std::vector<orr_instr> code;
  std::vector<int32_t> outputs;
  int add(int fn, int a = -1, int b = -1, double imm = 0) {
    code.push_back({fn, ORR_F32, a, b, -1, 0, imm});
    return int(code.size()) - 1;
  }
  int input(int i) { return add(ORR_FN_INPUT, i); }
  int number(double x) { return add(ORR_FN_CONST, -1, -1, x); }
  orr_expr view() const {
    return {sizeof(orr_expr), int32_t(code.size()), int32_t(outputs.size()), 0,
            code.data(),      outputs.data()};
  }
};

const bench::Loops& loops() {
  return __builtin_cpu_supports("avx512f") ? orr_cpu::avx512::fused_loops
                                           : orr_cpu::avx2::fused_loops;
}

template <class Fn>
void parallel(int64_t n, int64_t grain, Fn fn) {
  struct Task {
    Fn& fn;
    int64_t n, grain;
  } task{fn, n, grain};
  orrery::ThreadPool::get().run((n + grain - 1) / grain,
                                [](void* arg, int64_t i) {
                                  auto& t = *static_cast<Task*>(arg);
                                  t.fn(i * t.grain,
                                       t.n < (i + 1) * t.grain ? t.n : (i + 1) * t.grain);
                                },
                                &task);
}

void print(const char* name, double bytes, const std::vector<double>& t) {
  std::printf("%-44s %9.3f ms %7.1f GB/s", name, t[0] * 1e3, bytes / t[0] * 1e-9);
  if (t.size() > 1) std::printf("   %.2f x loop (%.3f ms)", t[0] / t[1], t[1] * 1e3);
  std::printf("\n");
}

void gelu(int64_t rows, int64_t columns) {
  Expression e;
  int x = e.add(ORR_FN_ADD, e.input(0), e.input(1));
  e.outputs = {e.add(ORR_FN_ADD, e.add(ORR_FN_GELU, x), e.input(2))};
  orr_expr view = e.view();
  orr_tensor t = tensor(ORR_F32, {rows, columns}), bias = t;
  bias.strides[0] = 0;
  Bench b("cpu", "pointwise", {t, bias, t}, {t}, {}, &view);
  auto loop = [&] {
    parallel(rows * columns, columns * 8, [&](int64_t first, int64_t last) {
      loops().gelu(b.in<float>(0), b.in<float>(1), b.in<float>(2), b.out<float>(0), first, last,
                   columns);
    });
  };
  char name[64];
  std::snprintf(name, sizeof name, "gelu(x + bias) + r, %lld x %lld", (long long)rows,
                (long long)columns);
  print(name, double(rows * columns) * 12, bench::best_of(60, {[&] { b.launch(); }, loop}));
}

// What scripts/orrery/optim/adamw.lua is traced to: p, g, m, v, then the scalars rate, c1, c2.
Expression adam_expression() {
  Expression e;
  int p = e.input(0), g = e.input(1), rate = e.input(4), c1 = e.input(5), c2 = e.input(6);
  auto scale = [&](int x, double by) { return e.add(ORR_FN_MUL, x, e.number(by)); };
  int m = e.add(ORR_FN_ADD, scale(e.input(2), 0.9), scale(g, 1 - 0.9));
  int v = e.add(ORR_FN_ADD, scale(e.input(3), 0.999), scale(e.add(ORR_FN_MUL, g, g), 1 - 0.999));
  int root = e.add(ORR_FN_SQRT, e.add(ORR_FN_MUL, v, c2));
  int ratio = e.add(ORR_FN_DIV, e.add(ORR_FN_MUL, m, c1), e.add(ORR_FN_ADD, root, e.number(1e-8)));
  int step = e.add(ORR_FN_ADD, ratio, scale(p, 0.01));
  e.outputs = {e.add(ORR_FN_SUB, p, e.add(ORR_FN_MUL, step, rate)), m, v};
  return e;
}

void adam(int64_t n) {
  Expression e = adam_expression();
  orr_expr view = e.view();
  orr_tensor t = tensor(ORR_F32, {n}), scalar = t;
  scalar.strides[0] = 0;
  Bench b("cpu", "pointwise", {t, t, t, t, scalar, scalar, scalar}, {t, t, t}, {}, &view);
  b.share(0, 0), b.share(1, 2), b.share(2, 3);
  const float values[] = {1e-3f, 10, 1000};
  for (int i = 0; i < 3; ++i) *b.in<float>(4 + i) = values[i];
  for (int64_t i = 0; i < n; ++i) b.in<float>(3)[i] = 0.25f;
  bench::Adam a{b.in<float>(0),
                b.in<float>(1),
                b.in<float>(2),
                b.in<float>(3),
                1e-3f,
                0.9f,
                0.999f,
                1e-8f,
                0.01f,
                10,
                1000};
  auto loop = [&] {
    parallel(n, 16384, [&](int64_t first, int64_t last) { loops().adam(a, first, last); });
  };
  char name[64];
  std::snprintf(name, sizeof name, "adamw, %lld f32", (long long)n);
  print(name, double(n) * 28, bench::best_of(20, {[&] { b.launch(); }, loop}));
}

void row_op(const char* kind, int64_t rows, int64_t columns, std::vector<orr_tensor> in,
            std::vector<orr_tensor> out, double bytes, int shared = -1) {
  Bench b("cpu", kind, std::move(in), std::move(out));
  if (shared >= 0) b.share(0, shared);
  char name[64];
  std::snprintf(name, sizeof name, "%s, %lld x %lld f32", kind, (long long)rows,
                (long long)columns);
  print(name, bytes * double(rows * columns), bench::best_of(40, {[&] { b.launch(); }}));
}

void rows(int64_t r, int64_t c) {
  orr_tensor x = tensor(ORR_F32, {r, c}), w = tensor(ORR_F32, {c}), s = tensor(ORR_F32, {r});
  row_op("softmax", r, c, {x}, {x}, 8);
  row_op("softmax_grad", r, c, {x, x}, {x}, 12);
  row_op("layernorm", r, c, {x, w, w}, {x, s, s}, 8);
  row_op("layernorm_grad", r, c, {x, x, w, s, s}, {x}, 12);
  row_op("norm_param_grad", r, c, {x, x, s, s}, {w, w}, 8);
}

void losses(int64_t r, int64_t c) {
  orr_tensor x = tensor(ORR_F32, {r, c}), labels = tensor(ORR_I64, {r}), s = tensor(ORR_F32, {r});
  row_op("cross_entropy", r, c, {x, labels, s}, {s, s}, 4);
  row_op("cross_entropy_grad", r, c, {s, x, labels, s, s}, {x}, 8, 1);
}

// out = in + 1: what the memory gives.
void copy(int64_t n) {
  Expression e;
  e.outputs = {e.add(ORR_FN_ADD, e.input(0), e.number(1))};
  orr_expr view = e.view();
  Bench b("cpu", "pointwise", {tensor(ORR_F32, {n})}, {tensor(ORR_F32, {n})}, {}, &view);
  b.share(0, 0);
  print("x += 1 in place", double(n) * 8, bench::best_of(20, {[&] { b.launch(); }}));
}

}  // namespace

int main(int argc, char** argv) {
  orrery::ThreadPool::get().configure(argc > 1 ? std::atoi(argv[1]) : 2);
  copy(1 << 26);
  gelu(256, 3072);
  gelu(4096, 3072);
  adam(1 << 20);
  adam(1 << 25);
  rows(256, 768);
  rows(16384, 768);
  losses(256, 50257);
}
