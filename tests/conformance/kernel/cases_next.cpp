// SPDX-License-Identifier: Apache-2.0
//
// pointwise_next: expressions of rows [a, b, C], and the sum over these rows or a norm of them.
#include <algorithm>

#include "conformance/kernel/cases.h"
#include "conformance/kernel/pointwise_oracle.h"

namespace kernel_suite {
namespace {

std::vector<Values> oracle(const Case& c, const std::vector<Values>& x) {
  const Case first = first_of(c), next = next_of(c);
  const auto own = x.begin() + long(first.in.size());
  std::vector<Values> all = pointwise_oracle(first, {x.begin(), own}), inputs{all[0]};
  inputs.insert(inputs.end(), own, x.end());
  for (Values& v : next.oracle(next, inputs)) all.push_back(std::move(v));
  return all;
}

// An expression of rows, instruction by instruction.
struct Rows {
  Case c;
  std::vector<int64_t> dims;
  int32_t dtype;

  Rows(int32_t dtype, std::vector<int64_t> dims, const std::string& note)
      : dims(std::move(dims)), dtype(dtype) {
    c.kind = "pointwise_next", c.oracle = oracle;
    c.note = note + shape_note({this->dims[0], this->dims[1], this->dims[2]});
    c.depth = double(this->dims[0] * this->dims[1] + this->dims[2]);
  }
  int op(int32_t fn, int a, int b = 0) {
    c.instrs.push_back({fn, dtype, a, b, 0, 0, 0});
    return int(c.instrs.size()) - 1;
  }
  int input(std::vector<int64_t> strides) {
    c.in.push_back(strided(dtype, dims, std::move(strides)));
    return op(ORR_FN_INPUT, int(c.in.size()) - 1);
  }
  int whole() { return input({dims[1] * dims[2], dims[2], 1}); }
  int bias() { return input({0, 0, 1}); }
  void store(int reg) { c.stored.push_back(reg), c.out.push_back(tensor(dtype, dims)); }

  Case sum(int32_t stored_as) {
    c.attrs = {text("next", "reduce"), text("fn", "sum")};
    c.out.push_back(tensor(stored_as, {dims[2]}));
    if (stored_as != dtype) c.note += std::string("_in_") + dtype_name(stored_as);
    return c;
  }
  // For each index of the first dim alone.
  Case sums_apart() {
    c.attrs = {text("next", "reduce"), text("fn", "sum")};
    c.note += "apart";
    c.out.push_back(tensor(dtype, {dims[0], dims[2]}));
    return c;
  }
  Case norm(bool rms) {
    c.attrs = {text("next", rms ? "rmsnorm" : "layernorm"), real("eps", 1e-2)};
    c.note += rms ? "rms" : "layer";
    for (int i = 0; i < (rms ? 1 : 2); ++i) c.in.push_back(tensor(dtype, {dims[2]}));
    c.out.push_back(tensor(dtype, {dims[0] * dims[1], dims[2]}));
    for (int i = 0; i < (rms ? 1 : 2); ++i)
      c.out.push_back(tensor(wide(dtype), {dims[0] * dims[1]}));
    return c;
  }
};

// As the gradient of an activation behind a bias; another result is stored as well.
Rows slope(int32_t dtype, std::vector<int64_t> dims) {
  Rows r(dtype, std::move(dims), "slope");
  const int dy = r.whole(), x = r.op(ORR_FN_ADD, r.whole(), r.bias());
  r.store(r.op(ORR_FN_MUL, dy, r.op(ORR_FN_GELU_GRAD, x)));
  r.store(x);
  return r;
}

// Terms that add to integers where the inputs are such.
Rows product(int32_t dtype, std::vector<int64_t> dims) {
  Rows r(dtype, std::move(dims), "product");
  const int by_row = r.input({r.dims[1], 1, 0});
  r.store(r.op(ORR_FN_MUL, r.whole(), by_row));
  r.c.exact = true;
  return r;
}

// `bias`: added to a tensor first, or last, to the sum of both tensors, or not at all.
enum Bias { kNoBias, kFirst, kLast };
Rows residual(int32_t dtype, std::vector<int64_t> dims, Bias bias) {
  const char* const notes[] = {"residual", "residual_bias", "bias_of_sum"};
  Rows r(dtype, std::move(dims), notes[bias]);
  const int x = r.whole();
  const int y = bias == kFirst ? r.op(ORR_FN_ADD, r.bias(), r.whole()) : r.whole();
  const int sum = r.op(ORR_FN_ADD, x, y);
  r.store(bias == kLast ? r.op(ORR_FN_ADD, sum, r.bias()) : sum);
  return r;
}

void add_sums(int32_t dtype, std::vector<Case>& cases) {
  for (int64_t rows : {1, 63, 65, 193})
    for (int64_t columns : {2, 35, 64})
      cases.push_back(product(dtype, {1, rows, columns}).sum(dtype));
  cases.push_back(slope(dtype, {5, 130, 72}).sum(dtype));
  cases.push_back(slope(dtype, {0, 3, 8}).sum(dtype));
  cases.push_back(slope(dtype, {5, 130, 72}).sums_apart());
  cases.push_back(product(dtype, {3, 65, 35}).sums_apart());
  if (dtype == ORR_BF16 || dtype == ORR_F16)
    cases.push_back(slope(dtype, {2, 70, 40}).sum(wide(dtype)));
}

void add_norms(int32_t dtype, std::vector<Case>& cases) {
  for (Bias bias : {kNoBias, kFirst, kLast})
    for (bool rms : {false, true}) {
      for (int64_t columns : {1, 67, 768, 2100})
        cases.push_back(residual(dtype, {2, 3, columns}, bias).norm(rms));
      Case rows = residual(dtype, {256, 1, 65}, bias).norm(rms);
      std::vector<int> cut(rows.in.size(), -1);
      std::fill_n(cut.begin(), bias == kNoBias ? 2 : 3, 0);  // all but the norm's own
      rows.axes = {{cut, std::vector<int>(rows.out.size(), 0)}};
      cases.push_back(rows);
    }
}

}  // namespace

Case first_of(const Case& both) {
  Case c = both;
  size_t inputs = 0;
  for (const orr_instr& i : both.instrs)
    if (i.fn == ORR_FN_INPUT) inputs = std::max(inputs, size_t(i.a) + 1);
  c.kind = "pointwise", c.oracle = pointwise_oracle, c.attrs.clear();
  c.in.resize(inputs), c.out.resize(both.stored.size());
  return c;
}

Case next_of(const Case& both) {
  const Case first = first_of(both);
  const orr_tensor& y = first.out[0];
  const int64_t columns = y.dims[y.rank - 1], rows = elements(y) / columns;
  Case c = both;
  c.kind = both.attrs[0].text, c.instrs.clear(), c.stored.clear();
  c.attrs.erase(c.attrs.begin());
  c.in.erase(c.in.begin(), c.in.begin() + long(first.in.size()));
  c.out.erase(c.out.begin(), c.out.begin() + long(first.out.size()));
  const bool sum = c.kind == "reduce";
  const int64_t parts = sum && c.out[0].rank == 2 ? c.out[0].dims[0] : 1;
  c.in.insert(c.in.begin(), sum ? tensor(y.dtype, {parts, rows / parts, columns})
                                : tensor(y.dtype, {rows, columns}));
  if (sum) c.out[0] = tensor(c.out[0].dtype, {parts, columns});
  c.oracle = sum ? reduce_oracle : norm_oracle;
  return c;
}

std::vector<Case> pointwise_next_cases() {
  std::vector<Case> cases;
  for (int32_t dtype : kReals) add_sums(dtype, cases), add_norms(dtype, cases);
  return cases;
}

}  // namespace kernel_suite
