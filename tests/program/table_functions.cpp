// SPDX-License-Identifier: Apache-2.0
//
// The rows of the op table for pointwise: one for each scalar function.
#include "program/build.h"
#include "table.h"

namespace program_test {
namespace {

using namespace orrery;

Build apply(int32_t fn) {
  return [fn](Program& p, const Ids& x) {
    return Ids{p.pointwise(fn, std::vector<Operand>(x.begin(), x.end()))};
  };
}

Entry row(int32_t fn, const std::vector<In>& in, int32_t out = 0) {
  Entry e;
  e.name = scalar_fn(fn).name, e.kind = "pointwise", e.fn = fn, e.in = in;
  e.build = apply(fn);
  e.out = {{out, {6, 3}}};
  return e;
}

Bad bad(const std::vector<Type>& in, int32_t fn, const std::string& error) {
  return {in, apply(fn), error};
}

// Functions of one argument drawn from [lo, hi).
Entry unary(int32_t fn, double lo = -2, double hi = 2, In::Fill fill = In::uniform) {
  Entry e = row(fn, {{fill, {6, 3}, lo, hi}});
  std::string name = scalar_fn(fn).name;
  e.bad = {bad({{ORR_F32, {2}}, {ORR_F32, {2}}}, fn, name + " takes 1 operands, not 2")};
  return e;
}

// The second operand is broadcast along the first dim.
Entry binary(int32_t fn, In a, In b, int32_t out = 0) {
  a.dims = {6, 3}, b.dims = {3};
  Entry e = row(fn, {a, b}, out);
  e.bad = {
      bad({{ORR_F32, {2, 3}}, {ORR_F32, {4}}}, fn, "shapes do not fit together: [2,3] and [4]"),
      bad({{ORR_F32, {2}}}, fn, " takes 2 operands, not 1")};
  return e;
}

Entry comparison(int32_t fn) {
  In whole{In::whole, {}, -2, 2};
  Entry e = binary(fn, whole, whole, ORR_BOOL);
  e.gradient = false;
  return e;
}

void add_unary(std::vector<Entry>& rows) {
  for (int32_t fn : {ORR_FN_NEG, ORR_FN_EXP, ORR_FN_TANH, ORR_FN_SIGMOID, ORR_FN_ERF, ORR_FN_SIN,
                     ORR_FN_COS, ORR_FN_GELU, ORR_FN_GELU_GRAD})
    rows.push_back(unary(fn));
  for (int32_t fn : {ORR_FN_SQRT, ORR_FN_RSQRT, ORR_FN_RECIP, ORR_FN_LOG})
    rows.push_back(unary(fn, 0.5, 2));
  rows.push_back(unary(ORR_FN_ABS, -4, 4, In::off_grid));
  for (int32_t fn : {ORR_FN_SIGN, ORR_FN_FLOOR, ORR_FN_CEIL, ORR_FN_ROUND}) {
    rows.push_back(unary(fn, -4, 4, In::off_grid));
    rows.back().gradient = false;  // piecewise constant
  }
  rows.push_back(unary(ORR_FN_ISFINITE));
  rows.back().out[0].dtype = ORR_BOOL, rows.back().gradient = false;
}

void add_binary(std::vector<Entry>& rows) {
  In any{In::uniform, {}}, positive{In::uniform, {}, 0.5, 2};
  for (int32_t fn : {ORR_FN_ADD, ORR_FN_SUB, ORR_FN_MUL, ORR_FN_MIN, ORR_FN_MAX})
    rows.push_back(binary(fn, any, any));
  rows.push_back(binary(ORR_FN_DIV, any, positive));
  rows.push_back(binary(ORR_FN_POW, positive, any));
  rows.push_back(binary(ORR_FN_MOD, {In::off_grid, {}, -4, 4}, {In::uniform, {}, 1.9, 2.1}));
  for (int32_t fn : {ORR_FN_EQ, ORR_FN_NE, ORR_FN_LT, ORR_FN_LE, ORR_FN_GT, ORR_FN_GE})
    rows.push_back(comparison(fn));
  In flag{In::whole, {}, 0, 2, ORR_BOOL};
  for (int32_t fn : {ORR_FN_AND, ORR_FN_OR}) {
    rows.push_back(binary(fn, flag, flag, ORR_BOOL));
    rows.back().gradient = false;
  }
  rows.push_back(unary(ORR_FN_NOT));
  rows.back().in = {{In::whole, {6, 3}, 0, 2, ORR_BOOL}};
  rows.back().out[0].dtype = ORR_BOOL, rows.back().gradient = false;
}

void add_ternary(std::vector<Entry>& rows) {
  In x{In::uniform, {6, 3}}, narrow{In::uniform, {6, 1}}, flag{In::whole, {6, 3}, 0, 2, ORR_BOOL};
  rows.push_back(row(ORR_FN_FMA, {x, narrow, x}));
  rows.push_back(row(ORR_FN_SELECT, {flag, x, narrow}));
  for (size_t i = rows.size() - 2; i < rows.size(); ++i)
    rows[i].bad = {bad({{ORR_BOOL, {2}}, {ORR_F32, {3}}, {ORR_F32, {3}}}, rows[i].fn,
                       "shapes do not fit together")};
}

// What is no function of registers: reading, numbers, casts, random numbers.
void add_sources(std::vector<Entry>& rows) {
  In x{In::uniform, {6, 3}};
  auto repeat = [](Program& p, const Ids& in) { return Ids{build::broadcast(p, in[0], {6, 3})}; };
  rows.push_back(row(ORR_FN_INPUT, {{In::uniform, {6, 1}}}));
  rows.back().build = repeat;
  rows.back().bad = {{{{ORR_F32, {4}}}, repeat, "[4] does not repeat to [6,3]"}};

  rows.push_back(row(ORR_FN_CONST, {}));
  rows.back().out[0].dtype = ORR_F32;
  rows.back().build = [](Program& p, const Ids&) { return Ids{p.constant(0.1, ORR_F32, {6, 3})}; };
  rows.back().gradient = rows.back().sharding = false;

  rows.push_back(row(ORR_FN_CAST, {x}, ORR_BF16));
  rows.back().out[0].dtype = ORR_F32;
  rows.back().eps = 0.01;  // f32 rounds; the function is linear
  rows.back().build = [](Program& p, const Ids& in) {
    return Ids{p.type(in[0]).dtype == ORR_F32 ? p.pointwise(ORR_FN_INPUT, {in[0]})
                                              : p.cast(in[0], ORR_F32)};
  };

  rows.push_back(row(ORR_FN_RAND, {x}, ORR_F32));
  rows.back().build = [](Program& p, const Ids& in) {
    return Ids{p.random_uniform({ORR_F32, {6, 3}}, in[0])};
  };
  rows.back().gradient = false, rows.back().like = true;
}

// Promotion: a number takes the tensor's dtype, an integer meets a real as a real.
void add_mixed(std::vector<Entry>& rows) {
  rows.push_back(row(ORR_FN_MUL, {{In::uniform, {6, 3}}, {In::whole, {}, 2, 9, ORR_I32}}));
  rows.back().name = "mul i32";
  rows.push_back(row(ORR_FN_SUB, {{In::uniform, {6, 3}}}));
  rows.back().name = "sub number";
  rows.back().build = [](Program& p, const Ids& in) {
    return Ids{p.pointwise(ORR_FN_SUB, {Operand::number(0.5), in[0]})};
  };
}

}  // namespace

std::vector<Entry> function_entries() {
  std::vector<Entry> rows;
  add_sources(rows);
  add_unary(rows);
  add_binary(rows);
  add_ternary(rows);
  add_mixed(rows);
  return rows;
}

}  // namespace program_test
