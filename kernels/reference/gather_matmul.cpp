// SPDX-License-Identifier: Apache-2.0
//
// gather_matmul and scatter_matmul: the rows of each matrix are copied side by side, and multiplied
// by the matmul of this plugin.
#include <algorithm>
#include <cstring>
#include <orrery/sdk/kind_checks.hpp>
#include <vector>

#include "leaves.h"
#include "op.h"

namespace reference {
namespace {

// For each of `matrices`, the rows of [first, first + n) that have its index, in their order.
std::vector<std::vector<int64_t>> rows_by_matrix(const Call& call, int64_t matrices, int64_t first,
                                                 int64_t n) {
  std::vector<std::vector<int64_t>> rows((size_t(matrices)));
  for (int64_t i = first; i < first + n; ++i)
    if (const int64_t e = call.integer(2, i); e >= 0) rows[size_t(e)].push_back(i);
  return rows;
}

void check_choices(const Call& call, int64_t matrices) {
  for (int64_t i = 0; i < call.op.in[2].dims[0]; ++i)
    if (const int64_t e = call.integer(2, i); e < -1 || e >= matrices)
      throw orr::Error(ORR_INVALID, std::string(call.op.kind) + ": index " + std::to_string(e) +
                                        " in row " + std::to_string(i) + " is outside the " +
                                        std::to_string(matrices) + " matrices (0.." +
                                        std::to_string(matrices - 1) + ", or -1 for none)");
}

// Rows of a matrix, side by side.
std::vector<char> packed(const char* from, const std::vector<int64_t>& rows, size_t bytes) {
  std::vector<char> to(rows.size() * bytes + 1);
  for (size_t i = 0; i < rows.size(); ++i)
    std::memcpy(to.data() + i * bytes, from + size_t(rows[i]) * bytes, bytes);
  return to;
}

// One matrix in memory, or a transposed one.
struct Matrix {
  Matrix(int32_t dtype, int64_t rows, int64_t columns, bool turned, char* at) {
    t.dtype = dtype, t.rank = 3;
    t.dims[0] = 1, t.dims[1] = rows, t.dims[2] = columns;
    t.strides[0] = rows * columns;
    t.strides[1] = turned ? 1 : columns, t.strides[2] = turned ? rows : 1;
    memory.host = at;
  }
  orr_buffer buffer() const { return {&memory, 0, 0}; }
  orr_tensor t{};
  orr_memory memory{};
};

// Matrix number e of w.
Matrix of_number(const orr_tensor& w, int64_t e, const char* at) {
  at += e * w.strides[0] * orr_dtype_bytes(w.dtype);
  Matrix m(w.dtype, w.dims[1], w.dims[2], false, const_cast<char*>(at));
  std::copy(w.strides, w.strides + 3, m.t.strides);
  return m;
}

void multiply(const Matrix& a, const Matrix& b, const Matrix& y) {
  const orr_tensor in[] = {a.t, b.t};
  const orr_buffer from[] = {a.buffer(), b.buffer()}, to[] = {y.buffer()};
  orr_op op{};
  op.size = sizeof op, op.kind = "matmul";
  op.n_in = 2, op.in = in, op.n_out = 1, op.out = &y.t;
  matmul_family.run({op, from, to, nullptr});
}

void run_gather(const Call& call) {
  const orr_tensor &x = call.op.in[0], &w = call.op.in[1], &y = call.op.out[0];
  const int64_t element = orr_dtype_bytes(x.dtype);
  const int64_t n = x.dims[0], depth = x.dims[1], columns = y.dims[1], matrices = w.dims[0];
  check_choices(call, matrices);
  char* out = call.output<char>(0);
  std::memset(out, 0, size_t(n * columns * element));
  const auto all = rows_by_matrix(call, matrices, 0, n);
  for (size_t e = 0; e < all.size(); ++e) {
    const int64_t m = int64_t(all[e].size());
    if (m == 0 || columns == 0) continue;
    std::vector<char> rows = packed(call.input<char>(0), all[e], size_t(depth * element));
    std::vector<char> found(size_t(m * columns * element));
    multiply({x.dtype, m, depth, false, rows.data()}, of_number(w, int64_t(e), call.input<char>(1)),
             {x.dtype, m, columns, false, found.data()});
    for (int64_t i = 0; i < m; ++i)
      std::memcpy(out + all[e][size_t(i)] * columns * element, found.data() + i * columns * element,
                  size_t(columns * element));
  }
}

uint64_t scatter_workspace(const orr_op& op) {
  const int64_t matrix = op.in[0].dims[1] * op.in[1].dims[1];
  return leaves_workspace(op, orr::attr_int(op, "matrices", 0) * matrix, op.out[0].dtype);
}

// The matrices of one leaf, to[E, d, f].
template <class Y>
void scatter_leaf(const Call& call, int64_t first, int64_t n, Y* to) {
  const orr_tensor &x = call.op.in[0], &dy = call.op.in[1];
  const int64_t d = x.dims[1], f = dy.dims[1], element = orr_dtype_bytes(x.dtype);
  for (const std::vector<int64_t>& rows :
       rows_by_matrix(call, orr::attr_int(call.op, "matrices", 0), first, n)) {
    const int64_t k = int64_t(rows.size());
    std::vector<char> left = packed(call.input<char>(0), rows, size_t(d * element));
    std::vector<char> right = packed(call.input<char>(1), rows, size_t(f * element));
    if (k == 0)
      std::fill(to, to + d * f, Y{});
    else
      multiply({x.dtype, d, k, true, left.data()}, {x.dtype, k, f, false, right.data()},
               {call.op.out[0].dtype, d, f, false, reinterpret_cast<char*>(to)});
    to += d * f;
  }
}

void run_scatter(const Call& call) {
  const int64_t matrices = orr::attr_int(call.op, "matrices", 0), n = call.op.in[2].dims[0];
  const int64_t count = matrices * call.op.in[0].dims[1] * call.op.in[1].dims[1];
  const int64_t length = n / Leaves(call.op).n;
  check_choices(call, matrices);
  with_real_sum(call.op.in[0].dtype, call.op.out[0].dtype, [&]<class T, class Y>(Type<T>, Type<Y>) {
    sum_leaves(call.op, call.output<Y>(0), count, reinterpret_cast<Y*>(call.workspace),
               [&](int64_t leaf, Y* to) { scatter_leaf(call, leaf * length, length, to); });
  });
}

}  // namespace

const Family gather_matmul_family = {"gather_matmul",
                                     "reference.gather_matmul.k256.1",
                                     require_gather_matmul,
                                     run_gather,
                                     nullptr,
                                     2,  // w
                                     0,
                                     nullptr};
const Family scatter_matmul_family = {"scatter_matmul",
                                      "reference.scatter_matmul.k256.1",
                                      require_scatter_matmul,
                                      run_scatter,
                                      scatter_workspace,
                                      0,
                                      0,
                                      nullptr};

}  // namespace reference
