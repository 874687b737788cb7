// SPDX-License-Identifier: Apache-2.0
//
// matmul by the plugin's own kernels: one launch, and where K is the batch, or there are leaves,
// one more that adds the parts.
#include "window_product.h"

#include <algorithm>

#include "../expression.h"
#include "../function.h"
#include "../window_layout.h"
#include "fold_launch.h"

namespace orr_cuda {
namespace {

const char* arithmetic_of(const WindowShape& shape) {
  return shape.dtype == ORR_F32 && shape.fast ? "tf32" : dtype_name(shape.dtype);
}

void supports(const orr_op& op, orr_support& out) {
  const WindowShape shape(op);
  orr::copy_text(out.numerics, std::string("cuda.windows.") + arithmetic_of(shape) +
                                   (shape.summed ? ".parts/1" : "/1"));
  out.strided_in = 3, out.takes = ORR_TAKES_GROUPED_SUMS;
  out.strided_out = 1;
}

uint64_t measure(const orr_op& op) { return WindowShape(op).sum_bytes(); }

// "window_product_kn_128x64_bf16"
std::string name_of(const WindowShape& shape) {
  return std::string("window_product_") + (shape.a.k_along ? "k" : "m") +
         (shape.b.k_along ? "k" : "n") + "_" + std::to_string(shape.rows) + "x" +
         std::to_string(shape.columns) + "_" + arithmetic_of(shape);
}

bool aligned(CUdeviceptr at) { return at % 16 == 0; }

// The product of a matmul_pointwise.
orr_op matmul_of(const orr_op& both) {
  orr_op op = both;
  op.kind = "matmul", op.n_in = 2, op.expr = nullptr;
  return op;
}

// Throws Unsupported if the expression is not the product plus input 2, a row for each group.
void require_bias(const orr_op& op) {
  require(
      op.n_in == 3 && op.n_out == 1 && op.expr && op.expr->n_outputs == 1 && !attr(op, "leaf_n"),
      "more follows the product than a bias");
  const orr_expr& e = *op.expr;
  std::vector<int> terms = terms_of(e, e.outputs[0]);
  std::sort(terms.begin(), terms.end());
  require(terms == std::vector<int>{0, 1} && e.n_instrs == 3,
          "more follows the product than a bias");
  const orr_tensor &bias = op.in[2], &y = op.out[0];
  for (int i = 0; i < e.n_instrs; ++i)
    require(e.instrs[i].dtype == y.dtype, "not all of one dtype");
  require(bias.rank == 3 && y.rank == 3 && bias.dims[2] == y.dims[2] &&
              (bias.strides[1] == 0 || bias.dims[1] == 1) && bias.strides[2] == 1,
          "what is added is no bias");
}

class WindowProduct : public Prepared {
 public:
  // `bias`: is added to each row; null: none.
  explicit WindowProduct(const orr_op& op, const orr_tensor* bias = nullptr)
      : shape_(op), product_(find_function(name_of(shape_))), args_{}, sum_args_{} {
    const WindowShape& s = shape_;
    const int64_t bytes = orr_dtype_bytes(s.dtype);
    // Of every 128 bytes of K, rows and columns, of which y takes the place in the end.
    shared_ = unsigned(kProductStages * (s.rows + s.columns) * 128);
    allow_shared(product_, shared_);
    args_.a = {nullptr, s.a.across, s.a.along, s.a.group, 0};
    args_.b = {nullptr, s.b.across, s.b.along, s.b.group, 0};
    args_.y_row = s.y_row, args_.y_group = s.y_group;
    args_.m = int32_t(s.m), args_.n = int32_t(s.n), args_.depth = int32_t(s.depth);
    args_.parts = int32_t(s.parts), args_.chunk = int32_t(s.chunk);
    args_.tiles_n = int32_t(divide_up(s.n, int64_t{s.columns}));
    args_.tiles = int32_t(divide_up(s.m, int64_t{s.rows})) * args_.tiles_n;
    has_bias_ = bias != nullptr;
    if (bias && bias->dims[0] > 1) args_.bias_group = bias->strides[0];
    rows_in_packets_ = s.y_row * bytes % 16 == 0 && s.y_group * bytes % 16 == 0;
    if (!s.in_parts()) return;
    sum_ = find_function(std::string("window_product_sum_") + dtype_name(s.dtype));
    sum_args_.elements = s.m * s.n, sum_args_.y_row = s.y_row, sum_args_.y_node = s.y_node;
    sum_args_.y_group = s.y_group, sum_args_.group = s.k / s.depth * s.parts * s.m * s.n;
    sum_args_.n = args_.n, sum_args_.parts = args_.parts;
    sum_args_.nodes = fill_nodes(Leaves(op), sum_args_.node);
  }

  void launch(CUstream stream, const Buffers& buffers) override {
    const CUdeviceptr a = buffers.in[0], b = buffers.in[1], y = buffers.out[0];
    args_.a.x = pointer(a), args_.a.packets = shape_.a.packets && aligned(a);
    args_.b.x = pointer(b), args_.b.packets = shape_.b.packets && aligned(b);
    args_.y = pointer(y), args_.y_packets = rows_in_packets_ && aligned(y);
    if (has_bias_) args_.bias = pointer(buffers.in[2]);
    const int64_t parts = shape_.k / shape_.depth * shape_.parts;
    if (shape_.in_parts()) args_.sums = pointer<float>(buffers.workspace);
    const auto groups = unsigned(shape_.groups);
    enqueue(stream, product_, {unsigned(parts * args_.tiles), groups}, {kProductThreads}, shared_,
            args_);
    if (!shape_.in_parts()) return;
    sum_args_.sums = args_.sums, sum_args_.y = args_.y;
    const int64_t blocks = divide_up(sum_args_.elements, int64_t{kProductThreads});
    enqueue(stream, sum_, {unsigned(blocks), groups}, {kProductThreads}, 0, sum_args_);
  }

 private:
  WindowShape shape_;
  Function product_, sum_{};
  WindowProductArgs args_;
  WindowSumArgs sum_args_;
  unsigned shared_;
  bool rows_in_packets_, has_bias_;
};

void supports_bias(const orr_op& op, orr_support& out) {
  require_bias(op);
  const orr_op product = matmul_of(op);
  supports(product, out);
  require(!WindowShape(product).in_parts(), "a sum in parts");
  orr::copy_text(out.numerics, std::string(out.numerics) + "+bias");
  out.strided_in |= 4;
}

std::unique_ptr<Prepared> prepare_bias(const orr_op& op) {
  return std::make_unique<WindowProduct>(matmul_of(op), op.in + 2);
}

}  // namespace

const Family window_product_family = {"matmul", supports, measure, prepare_as<WindowProduct>};
const Family window_product_bias_family = {"matmul_pointwise", supports_bias, nullptr,
                                           prepare_bias};

}  // namespace orr_cuda
