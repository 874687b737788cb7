// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/pointwise_oracle.h"

namespace kernel_suite {
namespace {

// Builds a case instruction by instruction; every call returns its register.
struct Builder {
  explicit Builder(const std::string& note) {
    c.kind = "pointwise";
    c.note = note;
    c.oracle = pointwise_oracle;
    c.exact = true;
  }
  int op(int32_t fn, int32_t dtype, int a = 0, int b = 0, int d = 0, double imm = 0) {
    c.instrs.push_back({fn, dtype, a, b, d, 0, imm});
    return int(c.instrs.size()) - 1;
  }
  int input(const orr_tensor& t, const Fill& fill = normal()) {
    c.in.push_back(t);
    c.fills.push_back(fill);
    return op(ORR_FN_INPUT, t.dtype, int(c.in.size()) - 1);
  }
  int constant(int32_t dtype, double value) { return op(ORR_FN_CONST, dtype, 0, 0, 0, value); }
  void store(int reg, const orr_tensor& t) {
    c.stored.push_back(reg);
    c.out.push_back(t);
  }
  Case c;
};

Case unary(int32_t fn, int32_t dtype, bool exact) {
  Builder b("unary" + std::to_string(fn));
  bool positive_only =
      fn == ORR_FN_SQRT || fn == ORR_FN_RSQRT || fn == ORR_FN_LOG || fn == ORR_FN_RECIP;
  orr_tensor t = tensor(dtype, {3, 87});
  b.store(b.op(fn, dtype, b.input(t, positive_only ? positive() : normal())), t);
  b.c.exact = exact;
  return b.c;
}

Case binary(int32_t fn, int32_t dtype) {
  Builder b("binary" + std::to_string(fn));
  bool divides = fn == ORR_FN_DIV || fn == ORR_FN_MOD, compares = fn >= ORR_FN_EQ;
  orr_tensor t = tensor(dtype, {3, 87});
  int x = b.input(t, fn == ORR_FN_POW && is_real(dtype) ? positive() : normal());
  int y = b.input(t, divides && is_real(dtype)             ? positive()
                     : fn == ORR_FN_POW && !is_real(dtype) ? below(4)
                                                           : normal());
  if (divides && !is_real(dtype)) y = b.op(ORR_FN_ADD, dtype, y, b.constant(dtype, 5));
  int32_t result = compares ? int32_t(ORR_BOOL) : dtype;
  b.store(b.op(fn, result, x, y), tensor(result, {3, 87}));
  b.c.exact = !(is_real(dtype) && (divides || fn == ORR_FN_POW));
  return b.c;
}

Case cast(int32_t from, int32_t to) {
  Builder b(std::string("to_") + dtype_name(to));
  bool unsigned_to = to == ORR_U8;  // a negative real has no such value
  b.store(b.op(ORR_FN_CAST, to, b.input(tensor(from, {70}), unsigned_to ? below(9) : normal())),
          tensor(to, {70}));
  return b.c;
}

Case ternary(int32_t fn, int32_t dtype) {
  Builder b(std::string(fn == ORR_FN_FMA ? "fma_" : "select_") + dtype_name(dtype));
  orr_tensor t = tensor(dtype, {2, 129});
  int x = b.input(fn == ORR_FN_SELECT ? tensor(ORR_BOOL, {2, 129}) : t), y = b.input(t),
      z = b.input(t);
  b.store(b.op(fn, dtype, x, y, z), t);
  return b.c;
}

Case logic(int32_t fn) {
  Builder b("logic" + std::to_string(fn));
  orr_tensor t = tensor(ORR_BOOL, {65});
  int x = b.input(t), y = b.input(t);
  b.store(b.op(fn, ORR_BOOL, x, y), t);
  return b.c;
}

Case finite(int32_t dtype) {
  Builder b("isfinite");
  Fill fill = values({0, 1, -1, NAN, HUGE_VAL, -HUGE_VAL, 0.5});
  b.store(b.op(ORR_FN_ISFINITE, ORR_BOOL, b.input(tensor(dtype, {7}), fill)),
          tensor(ORR_BOOL, {7}));
  return b.c;
}

// x * y + x, where y is broadcast, transposed or cut out of something larger.
Case layout(int32_t dtype, const std::string& note, const orr_tensor& x, const orr_tensor& y,
            const orr_tensor& out) {
  Builder b(note);
  int rx = b.input(x), ry = b.input(y);
  b.store(b.op(ORR_FN_ADD, dtype, b.op(ORR_FN_MUL, dtype, rx, ry), rx), out);
  return b.c;
}

void add_layouts(int32_t dtype, std::vector<Case>& cases) {
  for (int64_t n : {0, 1, 2, 15, 16, 17, 127, 128, 255, 256, 257, 1023, 1025}) {
    orr_tensor t = tensor(dtype, {n});
    cases.push_back(layout(dtype, "flat" + std::to_string(n), t, t, t));
  }
  orr_tensor t = tensor(dtype, {5, 7, 33}), wide_rows = strided(dtype, {5, 7, 33}, {400, 40, 1});
  orr_tensor turned = strided(dtype, {5, 7, 33}, {1, 5, 35}),
             bias = strided(dtype, {5, 7, 33}, {0, 0, 1});
  orr_tensor column = strided(dtype, {5, 7, 33}, {7, 1, 0}), one = tensor(dtype, {1, 7, 1});
  orr_tensor scalar = strided(dtype, {5, 7, 33}, {0, 0, 0}), empty = tensor(dtype, {3, 0, 2});
  cases.push_back(layout(dtype, "bias", t, bias, t));
  cases.push_back(layout(dtype, "column", t, column, t));
  cases.push_back(layout(dtype, "scalar", t, scalar, t));
  cases.push_back(layout(dtype, "dim_of_one", t, one, t));
  cases.push_back(layout(dtype, "turned", t, turned, t));
  cases.push_back(layout(dtype, "cut", wide_rows, bias, t));
  cases.push_back(layout(dtype, "into_rows", t, bias, wide_rows));
  cases.push_back(layout(dtype, "empty", empty, empty, empty));
  cases.push_back(layout(dtype, "rank0", tensor(dtype, {}), tensor(dtype, {}), tensor(dtype, {})));
  orr_tensor deep = tensor(dtype, {2, 1, 3, 1, 2, 2, 1, 5});
  cases.push_back(layout(dtype, "rank8", deep, deep, deep));
  // Rows that hold several blocks of a kernel and part of one more.
  orr_tensor far = tensor(dtype, {3, 531}), far_apart = strided(dtype, {3, 531}, {600, 1});
  cases.push_back(layout(dtype, "far_bias", far, strided(dtype, {3, 531}, {0, 1}), far));
  cases.push_back(layout(dtype, "far_column", far, strided(dtype, {3, 531}, {1, 0}), far));
  cases.push_back(layout(dtype, "far_into_rows", far, far, far_apart));
  orr_tensor rows = tensor(dtype, {256, 37}), row_bias = strided(dtype, {256, 37}, {0, 1});
  Case by_rows = layout(dtype, "rows", rows, row_bias, rows);
  by_rows.axes = {{{0, 0}, {0}}};
  cases.push_back(by_rows);
}

// Dropout: x * (u < keep) / keep. Of doubles the random numbers are doubles, too.
Case dropout(int32_t dtype) {
  const int32_t drawn = dtype == ORR_F64 ? ORR_F64 : ORR_F32;
  Builder b("dropout");
  orr_tensor t = tensor(dtype, {256, 35}), scalar = strided(ORR_I64, {256, 35}, {0, 0});
  int x = b.input(t);
  int seed = b.input(scalar, values(Values(size_t(256 * 35), 123456789012.0)));
  int step = b.input(scalar, values(Values(size_t(256 * 35), 17)));
  int base = b.input(scalar, values(Values(size_t(256 * 35), 17179869180.0)));
  int u = b.op(ORR_FN_RAND, drawn, seed, step, base, 42);
  int keep = b.op(ORR_FN_LT, ORR_BOOL, u, b.constant(drawn, 0.75));
  int scaled = b.op(ORR_FN_MUL, dtype, x, b.constant(dtype, 1.25));
  b.store(b.op(ORR_FN_SELECT, dtype, keep, scaled, b.constant(dtype, 0)), t);
  b.store(u, tensor(drawn, {256, 35}));
  b.c.axes = {{{0, 0, 0, 0}, {0, 0}, true}};
  return b.c;
}

// AdamW as fusion makes it: parameters and moments updated in one pass.
Case adamw(int32_t dtype) {
  Builder b("adamw");
  orr_tensor t = tensor(dtype, {1025}), scalar = strided(dtype, {1025}, {0});
  int p = b.input(t), g = b.input(t), m = b.input(t), v = b.input(t, positive());
  int lr = b.input(scalar, values(Values(1025, 1e-2)));
  int clip = b.input(scalar, values(Values(1025, 0.7)));
  auto binary = [&](int32_t fn, int x, int y) { return b.op(fn, dtype, x, y); };
  auto scale = [&](int x, double by) { return binary(ORR_FN_MUL, x, b.constant(dtype, by)); };
  g = binary(ORR_FN_MUL, g, clip);
  int m1 = binary(ORR_FN_ADD, scale(m, 0.9), scale(g, 0.1));
  int v1 = binary(ORR_FN_ADD, scale(v, 0.99), scale(binary(ORR_FN_MUL, g, g), 0.01));
  int root = binary(ORR_FN_ADD, b.op(ORR_FN_SQRT, dtype, scale(v1, 1.3)), b.constant(dtype, 1e-6));
  int step = binary(ORR_FN_ADD, binary(ORR_FN_DIV, scale(m1, 1.1), root), scale(p, 0.1));
  b.store(binary(ORR_FN_SUB, p, binary(ORR_FN_MUL, lr, step)), t);
  b.store(m1, t);
  b.store(v1, t);
  b.c.exact = false;
  return b.c;
}

bool is_exact(int32_t fn) {
  return fn <= ORR_FN_SIGN || fn == ORR_FN_FLOOR || fn == ORR_FN_CEIL || fn == ORR_FN_ROUND;
}

}  // namespace

std::vector<Case> pointwise_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kReals) {
    for (int32_t fn = ORR_FN_NEG; fn <= ORR_FN_GELU_GRAD; ++fn)
      cases.push_back(unary(fn, dtype, is_exact(fn)));
    cases.push_back(finite(dtype));
    cases.push_back(dropout(dtype));
    cases.push_back(adamw(dtype));
  }
  for (int32_t dtype : {ORR_F32, ORR_F64, ORR_BF16, ORR_F16, ORR_I32, ORR_I64}) {
    for (int32_t fn :
         {ORR_FN_ADD, ORR_FN_SUB, ORR_FN_MUL, ORR_FN_DIV, ORR_FN_MIN, ORR_FN_MAX, ORR_FN_POW,
          ORR_FN_MOD, ORR_FN_EQ, ORR_FN_NE, ORR_FN_LT, ORR_FN_LE, ORR_FN_GT, ORR_FN_GE})
      cases.push_back(binary(fn, dtype));
    cases.push_back(ternary(ORR_FN_FMA, dtype));
    add_layouts(dtype, cases);
  }
  for (int32_t dtype : kIntegers)
    for (int32_t fn : {ORR_FN_NEG, ORR_FN_ABS, ORR_FN_SIGN})
      cases.push_back(unary(fn, dtype, true));
  for (int32_t dtype : kAll) {
    cases.push_back(ternary(ORR_FN_SELECT, dtype));
    for (int32_t to : kAll) cases.push_back(cast(dtype, to));
    for (int32_t eight : kEights)
      cases.push_back(cast(dtype, eight)), cases.push_back(cast(eight, dtype));
  }
  for (int32_t from : kEights)
    for (int32_t to : kEights) cases.push_back(cast(from, to));
  for (int32_t fn : {ORR_FN_AND, ORR_FN_OR, ORR_FN_NOT}) cases.push_back(logic(fn));
  return cases;
}

}  // namespace kernel_suite
