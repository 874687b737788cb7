// SPDX-License-Identifier: Apache-2.0
//
// matmul by cuBLASLt, but for those of window_product.cpp. A pointwise kernel adds leaves in the
// order of the tree, and rounds each node to the output's type.
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "../driver.h"
#include "../op.h"
#include "../padding.h"
#include "../product.h"
#include "../rows_of_k.h"
#include "../window_layout.h"
#include "column_sums.h"
#include "window_product.h"

namespace orr_cuda {
namespace {

// How many nodes of scratch the tree over the leaves of a call takes at most.
uint64_t levels_of(const orr_op& op) {
  return std::bit_width(static_cast<uint64_t>(Leaves(op).n - 1));
}

uint64_t node_bytes(const MatmulShape& shape) {
  return round_up(uint64_t(shape.g * shape.m * shape.n * orr_dtype_bytes(shape.dtype_y)), 256);
}

// What the algorithm is chosen for, and the alignment of a, b and y, on which it depends.
std::string numerics_of(const MatmulShape& shape) {
  std::string text = std::string("cublaslt.") + dtype_name(shape.dtype) + ".";
  if (is_eight_bits(shape.dtype))
    text += std::string(dtype_name(shape.dtype_b)) + "." + dtype_name(shape.dtype_y) + ".";
  if (shape.fast || shape.rows_summed) return text + (shape.fast ? "fast" : "own") + "/1";
  text += std::to_string(nominal_rows) + "x" + std::to_string(nominal_cols);
  if (!shape.a || !shape.b || !shape.y) return text + "/2";
  const Alignment at = alignment_of(shape);
  for (const int64_t bytes : {at.a, at.b, at.y}) text += "." + std::to_string(bytes);
  return text + "/2";
}

void supports(const orr_op& op, orr_support& out) {
  if (is_window_product(op)) return window_product_family.supports(op, out);
  const MatmulShape shape(op);
  orr::copy_text(out.numerics, numerics_of(shape));
  out.takes = ORR_TAKES_GROUPED_SUMS;
  out.strided_in = (shape.a ? 1u : 0u) | (shape.b ? 2u : 0u);  // of eight bits: copied here
  out.strided_out = shape.y && shape.k > 0 && levels_of(op) == 0 ? 1u : 0u;
}

// The workspace is the library's, then nodes of leaves, then the copies of a product with padding
// or of eight bits.
uint64_t nodes_end(const orr_op& op, const MatmulShape& shape, const MatmulShape& grown) {
  return blas_workspace(grown) + levels_of(op) * node_bytes(shape);
}

uint64_t measure(const orr_op& op) {
  if (is_window_product(op)) return window_product_family.measure(op);
  const MatmulShape shape(op);
  MatmulShape grown = shape;
  const auto padding = Padding::of(op, grown);
  return nodes_end(op, shape, grown) + (padding ? padding->bytes() : 0) + RowsOfK::bytes(shape);
}

// to += from, over one node.
std::unique_ptr<Prepared> prepare_add(const MatmulShape& shape) {
  orr_tensor flat{};
  flat.dtype = shape.dtype_y, flat.rank = 1;
  flat.dims[0] = shape.g * shape.m * shape.n, flat.strides[0] = 1;
  Terms terms(flat);
  const int32_t to = terms.input(flat), from = terms.input(flat);
  return pointwise_family.prepare(terms.op({terms.push(ORR_FN_ADD, to, from)}));
}

class Matmul : public Prepared {
 public:
  explicit Matmul(const orr_op& op)
      : shape_(op),
        grown_(op),
        padding_(Padding::of(op, grown_)),
        leaves_(op),
        depth_(grown_.k / leaves_.n),
        copies_at_(nodes_end(op, shape_, grown_)) {
    const int64_t bytes = orr_dtype_bytes(shape_.dtype), y_bytes = orr_dtype_bytes(shape_.dtype_y);
    const bool eight = is_eight_bits(shape_.dtype);  // K lies along rows then
    const orr_tensor& ty = op.out[0];
    const bool groups = shape_.g > 1 && ty.rank == 3;
    node_step_ = uint64_t((groups ? shape_.g * shape_.m * shape_.n : ty.strides[0]) * y_bytes);
    a_step_ = depth_ * (eight ? 1 : op.in[0].strides[2] * bytes);
    b_step_ = depth_ * (eight ? 1 : op.in[1].strides[1] * bytes);
    if (empty()) return;
    if (eight) rows_of_k_.emplace(op, shape_);
    alignment_ = alignment_of(grown_);
    alignment_.a = std::gcd(alignment_.a, a_step_), alignment_.b = std::gcd(alignment_.b, b_step_);
    // A sum over leaves has the alignment of any of its nodes, so that one leaf has it too.
    if (orr::attr(op, "leaf_n"))
      alignment_.y = std::gcd(alignment_.y, grown_.m * grown_.n * y_bytes);
    const MatmulShape leaf = grown_.of_leaf(depth_);
    aligned_.emplace(leaf, alignment_, true);
    // Rarely used: not worth a race. Of eight bits there is none.
    if (!eight && std::max({alignment_.a, alignment_.b, alignment_.y}) > bytes)
      unaligned_.emplace(leaf, Alignment{bytes, bytes, bytes}, false);
    if (leaves_.n > 1) add_ = prepare_add(shape_);
  }

  void launch(CUstream stream, const Buffers& buffers) override {
    if (shape_.m == 0 || shape_.n == 0 || shape_.g == 0) return;
    if (empty()) {  // sums of no terms
      const int64_t elements = shape_.g * shape_.m * shape_.n * leaves_.nodes();
      ORR_DRIVER(cuMemsetD8Async, buffers.out[0], 0,
                 size_t(elements * orr_dtype_bytes(shape_.dtype_y)), stream);
      return;
    }
    ProductPlaces all{buffers.in[0], buffers.in[1], 0, buffers.workspace};
    if (rows_of_k_) all = rows_of_k_->before(stream, all, all.workspace + copies_at_);
    LeafNode nodes[kMaxNodes];
    CUdeviceptr y = buffers.out[0];
    for (int k = 0, n = fill_nodes(leaves_, nodes); k < n; ++k, y += node_step_)
      add_node(stream, all, nodes[k].first, nodes[k].count, y, 0);
  }

 private:
  bool empty() const { return shape_.m * shape_.n * shape_.g * shape_.k == 0; }

  // The node over the call's leaves [first, first + n) into `to`; scratch from `level` on is free.
  void add_node(CUstream stream, const ProductPlaces& all, int64_t first, int64_t n, CUdeviceptr to,
                uint64_t level) {
    if (n == 1) return multiply(stream, all, first, to);
    const auto left = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)) / 2);
    const CUdeviceptr beside = all.workspace + blas_workspace(grown_) + level * node_bytes(shape_);
    add_node(stream, all, first, left, to, level);
    add_node(stream, all, first + left, n - left, beside, level + 1);
    const CUdeviceptr in[] = {to, beside};
    add_->launch(stream, {in, &to, 0});
  }

  void multiply(CUstream stream, ProductPlaces leaf, int64_t number, CUdeviceptr y) const {
    leaf.a += CUdeviceptr(number * a_step_), leaf.b += CUdeviceptr(number * b_step_), leaf.y = y;
    const ProductPlaces at =
        padding_ ? padding_->before(stream, leaf, leaf.workspace + copies_at_) : leaf;
    (alignment_.fits(at) || !unaligned_ ? *aligned_ : *unaligned_).launch(stream, at);
    if (padding_) padding_->after(stream, leaf, at);
  }

  MatmulShape shape_, grown_;  // as it is, and with padding
  std::optional<Padding> padding_;
  std::optional<RowsOfK> rows_of_k_;
  Leaves leaves_;
  int64_t depth_;
  uint64_t copies_at_;  // in the workspace
  uint64_t node_step_;
  int64_t a_step_, b_step_;
  Alignment alignment_{1, 1, 1};
  std::optional<Product> aligned_, unaligned_;
  std::unique_ptr<Prepared> add_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) {
  if (is_window_product(op)) return window_product_family.prepare(op);
  return std::make_unique<Matmul>(op);
}

}  // namespace

const Family matmul_family = {"matmul", supports, measure, prepare};

}  // namespace orr_cuda
