// SPDX-License-Identifier: Apache-2.0
//
// See cpu_expressions.h.
#include "cpu_expressions.h"

#include <cmath>
#include <map>
#include <random>

namespace kernel_suite {
namespace {

const Values& hard_numbers() {
  static const Values all = {0.0,   -0.0, NAN,   HUGE_VAL, -HUGE_VAL, 1e-40, -1e-45, 1e-20, 3e38,
                             -1e19, 88.8, -87.5, 0.62,     -0.93,     16.0,  1.0,    -1.0,  0.5};
  return all;
}

struct Random {
  std::mt19937 generator;
  int below(size_t n) { return int(generator() % n); }
  template <class T>
  T of(const std::vector<T>& all) {
    return all[size_t(below(all.size()))];
  }
};

// An expression that grows by random instructions on what is there already.
struct Grower {
  Random random;
  Case c;
  std::vector<int> reals, masks;               // registers
  std::map<int32_t, std::vector<int>> others;  // of integers and doubles
  bool mixed;
  int draws = 0;  // random numbers
  int32_t dtype;
  std::vector<int64_t> dims;

  Grower(uint32_t seed, bool mixed) : random{std::mt19937(seed)}, mixed(mixed) {
    c.kind = "pointwise";
    c.note = "random" + std::to_string(seed);
    dtype = random.of<int32_t>({ORR_F32, ORR_F32, ORR_F32, ORR_BF16, ORR_F16});
    dims = random.of<std::vector<int64_t>>({{1},
                                            {63},
                                            {1024},
                                            {2117},
                                            {40000},
                                            {5, 31},
                                            {3, 531},
                                            {7, 64},
                                            {200, 96},
                                            {41, 768},
                                            {2, 3, 640}});
    const int inputs = 1 + random.below(5), steps = 1 + random.below(40);
    for (int i = 0; i < inputs; ++i) input(i == 0);
    if (mixed)
      for (int32_t type : {ORR_I32, ORR_I64, ORR_U8, ORR_F64, ORR_BOOL}) other_input(type);
    for (int i = 0; i < steps; ++i) step();
    const int outputs = 1 + random.below(4);
    for (int i = 0; i < outputs; ++i) output();
  }

  int add(int32_t fn, int32_t type, int a = 0, int b = 0, int d = 0, double imm = 0) {
    c.instrs.push_back({fn, type, a, b, d, 0, imm});
    return int(c.instrs.size()) - 1;
  }
  int real() { return random.of(reals); }

  // Whole, a row, a column, a scalar or with rows that lie apart.
  orr_tensor laid_out(int32_t type, bool whole) {
    orr_tensor t = tensor(type, dims);
    const int last = t.rank - 1, layout = whole ? 0 : random.below(7);
    for (int d = 0; d < t.rank; ++d) {
      if ((layout == 1 && d < last) || (layout == 2 && d == last) || layout == 3) t.strides[d] = 0;
      if (layout == 4) t.strides[d] *= 2;
    }
    return t;
  }
  int filled(const orr_tensor& t, Values v) {
    c.in.push_back(t);
    c.fills.push_back(values(std::move(v)));
    return add(ORR_FN_INPUT, t.dtype, int(c.in.size()) - 1);
  }
  void input(bool whole) {
    const int32_t type = random.below(4) ? dtype : int32_t(ORR_F32);
    const orr_tensor t = laid_out(type, whole);
    Values v;
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < elements(t); ++i)
      v.push_back(random.below(5) ? 3 * normal(random.generator) : random.of(hard_numbers()));
    const int r = filled(t, v);
    reals.push_back(type == dtype ? r : add(ORR_FN_CAST, dtype, r));
  }

  void step() {
    const int kind = random.below(12);
    if (mixed && random.below(2)) {
      other_step();
    } else if (kind == 0) {
      reals.push_back(add(ORR_FN_CONST, dtype, 0, 0, 0, rounded(dtype, random.of(hard_numbers()))));
    } else if (kind < 5) {
      const int fn = random.of<int>(
          {ORR_FN_ADD, ORR_FN_SUB, ORR_FN_MUL, ORR_FN_DIV, ORR_FN_MIN, ORR_FN_MAX, ORR_FN_MOD});
      reals.push_back(add(fn, dtype, real(), real()));
    } else if (kind < 8) {
      int fn = ORR_FN_NEG + random.below(ORR_FN_GELU_GRAD - ORR_FN_NEG + 1);
      if (fn == ORR_FN_SIN || fn == ORR_FN_COS) fn = ORR_FN_GELU;  // the block machine's own
      reals.push_back(add(fn, dtype, real()));
    } else if (kind == 8) {
      reals.push_back(add(ORR_FN_FMA, dtype, real(), real(), real()));
    } else if (kind == 9 && !masks.empty()) {
      reals.push_back(add(ORR_FN_SELECT, dtype, random.of(masks), real(), real()));
    } else {
      logic();
    }
  }
  void logic() {
    const int kind = random.below(3);
    if (kind == 0 && masks.size() > 1)
      masks.push_back(add(random.of<int>({ORR_FN_AND, ORR_FN_OR, ORR_FN_EQ, ORR_FN_NE}), ORR_BOOL,
                          random.of(masks), random.of(masks)));
    else if (kind == 1)
      masks.push_back(add(ORR_FN_ISFINITE, ORR_BOOL, real()));
    else
      masks.push_back(add(ORR_FN_EQ + random.below(6), ORR_BOOL, real(), real()));
    if (random.below(3) == 0) masks.back() = add(ORR_FN_NOT, ORR_BOOL, masks.back());
    if (random.below(3) == 0) reals.push_back(add(ORR_FN_CAST, dtype, masks.back()));
  }

  double other_number(int32_t type) {
    if (type == ORR_F64)
      return random.below(4) ? random.below(999) * 0.37 - 100 : random.of(hard_numbers());
    if (type == ORR_U8) return random.below(256);
    if (type == ORR_BOOL) return random.below(2);
    const Values hard = {0,    1, -1, 2147483647.0, -2147483648.0, type == ORR_I64 ? -0x1p63 : 7,
                         12345};
    return random.below(3) ? random.below(2000) - 1000 : random.of(hard);
  }
  void other_input(int32_t type) {
    const orr_tensor t = laid_out(type, false);
    Values v;
    for (int64_t i = 0; i < elements(t); ++i) v.push_back(other_number(type));
    keep(type, filled(t, v));
  }
  void keep(int32_t type, int r) {
    if (type == ORR_BOOL) return masks.push_back(r);
    type == dtype ? reals.push_back(r) : others[type].push_back(r);
  }
  int any_of(int32_t type) {
    return random.of(type == ORR_BOOL ? masks : type == dtype ? reals : others[type]);
  }
  // One of the functions that are code for these types, of any of their values.
  void other_step() {
    const int32_t type = random.of<int32_t>({ORR_I32, ORR_I64, ORR_U8, ORR_F64});
    const auto x = [&] { return any_of(type); };
    switch (random.below(7)) {
      case 0: {
        std::vector<int> fns = {ORR_FN_ADD, ORR_FN_SUB, ORR_FN_MUL, ORR_FN_MIN, ORR_FN_MAX};
        if (type != ORR_I64) fns.insert(fns.end(), {ORR_FN_MOD, ORR_FN_DIV});
        return keep(type, add(random.of(fns), type, x(), x()));
      }
      case 1: {
        std::vector<int> fns = {ORR_FN_NEG, ORR_FN_ABS, ORR_FN_SIGN, ORR_FN_FLOOR, ORR_FN_ROUND};
        if (type == ORR_F64)
          fns.insert(fns.end(), {ORR_FN_SQRT, ORR_FN_RSQRT, ORR_FN_RECIP, ORR_FN_CEIL});
        return keep(type, add(random.of(fns), type, x()));
      }
      case 2: return keep(type, add(ORR_FN_FMA, type, x(), x(), x()));
      case 3: return keep(type, add(ORR_FN_SELECT, type, any_of(ORR_BOOL), x(), x()));
      case 4: return keep(ORR_BOOL, add(ORR_FN_EQ + random.below(6), ORR_BOOL, x(), x()));
      case 5: return cast();
      default:
        return random.below(2) ? draw()
                               : keep(type, add(ORR_FN_CONST, type, 0, 0, 0, other_number(type)));
    }
  }
  // AVX2 has no conversion between int64 and reals, and none here has that of reals to u8.
  void cast() {
    const std::vector<int32_t> types = {dtype, ORR_I32, ORR_I64, ORR_U8, ORR_F64, ORR_BOOL};
    const int32_t from = random.of(types), to = random.of(types);
    const bool from_real = from == dtype || from == ORR_F64, to_real = to == dtype || to == ORR_F64;
    if ((from_real && (to == ORR_I64 || to == ORR_U8)) || (from == ORR_I64 && to_real)) return;
    keep(to, add(ORR_FN_CAST, to, any_of(from)));
  }
  void draw() {
    // Counters with a carry; one base in four begins within a counter, which is no machine code.
    const double base = 4.0 * random.below(40) + 0x1p34 - 256 + (random.below(4) ? 0 : 1);
    const double numbers[] = {0x1p40 + random.below(1 << 20), double(random.below(99)), base};
    int r[3];
    for (int i = 0; i < 3; ++i) {
      orr_tensor t = tensor(ORR_I64, dims);
      for (int d = 0; d < t.rank; ++d) t.strides[d] = 0;
      r[i] = filled(t, Values(size_t(elements(t)), numbers[i]));
    }
    const int x = add(ORR_FN_RAND, ORR_F32, r[0], r[1], r[2], ++draws);
    reals.push_back(dtype == ORR_F32 ? x : add(ORR_FN_CAST, dtype, x));
  }

  void output() {
    if (mixed && random.below(2)) {
      const int32_t type = random.of<int32_t>({ORR_I32, ORR_I64, ORR_U8, ORR_F64, ORR_BOOL});
      c.stored.push_back(any_of(type));
      return c.out.push_back(tensor(type, dims));
    }
    int r = random.below(3) ? reals.back() : real();
    const int32_t type = random.below(4) ? dtype : int32_t(ORR_F32);
    if (type != dtype) r = add(ORR_FN_CAST, type, r);
    c.stored.push_back(r);
    c.out.push_back(tensor(type, dims));
  }
};

}  // namespace

Case random_case(uint32_t seed, bool mixed) { return Grower(seed, mixed).c; }

}  // namespace kernel_suite
