// SPDX-License-Identifier: Apache-2.0
//
// gather_matmul and scatter_matmul: rows are sorted by matrix once per launch (a stable counting
// sort) and copied side by side; then each matrix that has rows is one matmul of these.
#include "grouped_rows.h"
#include "integers.h"
#include "leaves.h"
#include "matmul_plan.h"
#include "typed.h"

namespace orr_cpu::ORR_ISA {

Kernel* make_matmul(const orr_op& op);

namespace {

struct Matrix {
  int32_t dtype;
  int64_t rows, columns, row_stride, column_stride;
  void* at;
};

orr_tensor tensor_of(const Matrix& m) {
  orr_tensor t{};
  t.dtype = m.dtype, t.rank = 3;
  t.dims[0] = 1, t.dims[1] = m.rows, t.dims[2] = m.columns;
  t.strides[0] = m.rows * m.columns, t.strides[1] = m.row_stride, t.strides[2] = m.column_stride;
  return t;
}

// Multiplies matrices whose sizes are known only now. The scratch that a product needs depends on
// them, but hardly grows with them; it is kept from launch to launch.
class Multiplier {
 public:
  Multiplier() = default;
  Multiplier(const Multiplier&) = delete;
  Multiplier& operator=(const Multiplier&) = delete;
  ~Multiplier() { delete[] scratch_; }

  void multiply(const Matrix& a, const Matrix& b, const Matrix& y) {
    const orr_tensor in[] = {tensor_of(a), tensor_of(b)}, out[] = {tensor_of(y)};
    orr_op op{};
    op.size = sizeof op, op.kind = "matmul";
    op.n_in = 2, op.in = in, op.n_out = 1, op.out = out;
    const uint64_t bytes = matmul_workspace(op);
    if (bytes > bytes_) {
      delete[] scratch_;
      scratch_ = nullptr, bytes_ = 0;
      scratch_ = new char[bytes], bytes_ = bytes;
    }
    orr_memory memory[4] = {};
    void* const at[] = {a.at, b.at, y.at, scratch_};
    orr_buffer buffer[4];
    for (int i = 0; i < 4; ++i) memory[i].host = at[i], buffer[i] = {&memory[i], 0, 0};
    Kernel* const kernel = make_matmul(op);
    kernel->launch(buffer, buffer + 2, buffer + 3);
    delete kernel;
  }

 private:
  char* scratch_ = nullptr;
  uint64_t bytes_ = 0;
};

struct GatherMatmul : Kernel {
  explicit GatherMatmul(const orr_op& op)
      : rows("gather_matmul", op, op.in[1].dims[0]),
        depth(op.in[0].dims[1]),
        columns(op.out[0].dims[1]),
        dtype(op.in[0].dtype),
        w_strides{op.in[1].strides[0], op.in[1].strides[1], op.in[1].strides[2]} {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const int64_t element = orr_dtype_bytes(dtype);
    RowSort sorted(rows, host<void>(in[2]), host<char>(*work));
    char* const x = sorted.behind;
    char* const found = x + grouped_bytes(rows.n * depth * element);
    sorted.collect(host<char>(in[0]), depth * element, x);
    char* const w = host<char>(in[1]);
    for (int64_t e = 0; e < rows.matrices; ++e) {
      const int64_t first = sorted.start[e], m = sorted.start[e + 1] - first;
      if (m > 0 && columns > 0)
        products.multiply(
            {dtype, m, depth, depth, 1, x + first * depth * element},
            {dtype, depth, columns, w_strides[1], w_strides[2], w + e * w_strides[0] * element},
            {dtype, m, columns, columns, 1, found + first * columns * element});
    }
    sorted.spread(found, columns * element, host<char>(out[0]));
  }

  GroupedRows rows;
  int64_t depth, columns;
  int32_t dtype;
  int64_t w_strides[3];
  Multiplier products;
};

template <class S, class Y>
struct ScatterMatmul : Kernel {
  explicit ScatterMatmul(const orr_op& op)
      : rows("scatter_matmul", op, attr_int(op, "matrices", 0)),
        leaves(op),
        d(op.in[0].dims[1]),
        f(op.in[1].dims[1]),
        from(op.in[0].dtype),
        to(op.out[0].dtype) {}

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    RowSort sorted(rows, host<void>(in[2]), host<char>(*work));
    x = sorted.behind;
    dy = x + grouped_bytes(rows.n * d * int64_t(sizeof(S)));
    stack = (Y*)(dy + grouped_bytes(rows.n * f * int64_t(sizeof(S))));
    sorted.collect(host<char>(in[0]), d * int64_t(sizeof(S)), x);
    sorted.collect(host<char>(in[1]), f * int64_t(sizeof(S)), dy);
    for (int64_t e = 0; e < rows.matrices; ++e) matrix(sorted, e, host<Y>(out[0]) + e * d * f);
  }

  // All nodes of one matrix. Of finished subtrees the first lies where the node belongs.
  void matrix(const RowSort& sorted, int64_t e, Y* y) {
    const int64_t length = rows.n / leaves.n;
    int64_t at = leaves.lo, leaf = 0, row = sorted.start[e];
    const int64_t last = sorted.start[e + 1];
    while (int64_t count = orr_tree_node(&at, leaves.lo + leaves.n, leaves.total)) {
      const auto part = [&](int64_t i) { return i ? stack + (i - 1) * d * f : y; };
      int64_t depth = 0;
      for (int64_t k = 0; k < count; ++k, ++leaf) {
        const int64_t first = row;
        while (row < last && sorted.order[row] < (leaf + 1) * length) ++row;
        product(first, row - first, part(depth));
        for (int64_t i = k; i & 1; i >>= 1, --depth) add(part(depth - 1), part(depth));
        ++depth;
      }
      for (; depth > 1; --depth) add(part(depth - 2), part(depth - 1));
      y += rows.matrices * d * f;
    }
  }

  void product(int64_t first, int64_t count, Y* y) {
    if (count == 0) {
      __builtin_memset(y, 0, size_t(d * f) * sizeof(Y));
      return;
    }
    products.multiply({from, d, count, 1, d, x + first * d * int64_t(sizeof(S))},
                      {from, count, f, f, 1, dy + first * f * int64_t(sizeof(S))},
                      {to, d, f, f, 1, y});
  }

  void add(Y* sum, const Y* other) const {
    parallel_ranges(d * f, 1 << 16, [&](int64_t first, int64_t last) {
      each_vector(first, last, [&](int64_t i, auto n) {
        store(sum + i, load(sum + i, n) + load(other + i, n), n);
      });
    });
  }

  GroupedRows rows;
  Leaves leaves;
  int64_t d, f;
  int32_t from, to;
  char *x = nullptr, *dy = nullptr;
  Y* stack = nullptr;
  Multiplier products;
};

}  // namespace

Kernel* make_gather_matmul(const orr_op& op) { return new GatherMatmul(op); }
Kernel* make_scatter_matmul(const orr_op& op) {
  return make_sum<ScatterMatmul>(op.in[0].dtype, op.out[0].dtype, op);
}

}  // namespace orr_cpu::ORR_ISA
