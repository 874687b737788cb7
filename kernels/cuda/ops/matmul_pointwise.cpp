// SPDX-License-Identifier: Apache-2.0
//
// matmul_pointwise by an epilogue of cuBLASLt, or by the plugin's own product and a bias. If the
// library has no algorithm with that epilogue for this shape, or addresses are not aligned enough,
// a launch runs the two ops instead.
#include <algorithm>
#include <optional>
#include <vector>

#include "../driver.h"
#include "../epilogue.h"
#include "../op.h"
#include "../padding.h"
#include "../product.h"
#include "../window_layout.h"
#include "window_product.h"

namespace orr_cuda {
namespace {

constexpr int64_t whole_alignment = 16;  // of what an epilogue reads and writes beside

void supports(const orr_op& op, orr_support& out) {
  if (is_window_product(op)) return window_product_bias_family.supports(op, out);
  require(!orr::attr(op, "leaf_n"), "no leaves here");
  const Epilogue epilogue(op);
  matmul_family.supports(epilogue.take_apart(op).matmul, out);
  orr::copy_text(out.numerics, out.numerics + epilogue.name());
  out.strided_in |= ~3u;
  if (out.strided_out) out.strided_out = ~0u;
}

// Rows with padding (padding.h) in the call with an epilogue. If there are more columns then, the
// bias is copied, as it ends where they did.
class PaddedEpilogue {
 public:
  // Rounds the odd extent of the shape up. Empty, as the shape was, if nothing has padding, or the
  // epilogue reads or writes another tensor, which has none.
  static std::optional<PaddedEpilogue> of(const orr_op& matmul, const Epilogue& epilogue,
                                          MatmulShape& shape) {
    if (epilogue.added_at || epilogue.aux_at) return {};
    PaddedEpilogue made;
    made.bias_bytes_ = uint64_t(shape.n * orr_dtype_bytes(shape.dtype));
    const int64_t columns = shape.n;
    made.product_ = Padding::of(matmul, shape);
    if (!made.product_) return {};
    made.bias_at_ = round_up(blas_workspace(shape) + made.product_->bytes(), 256);
    made.copied_bytes_ =
        shape.n > columns ? uint64_t(shape.n * orr_dtype_bytes(shape.dtype)) : uint64_t{0};
    return made;
  }

  uint64_t workspace() const { return bias_at_ + copied_bytes_; }

  ProductPlaces before(CUstream stream, const MatmulShape& shape, const ProductPlaces& at) const {
    ProductPlaces made =
        product_->before(stream, at, at.workspace + CUdeviceptr(blas_workspace(shape)));
    if (!copied_bytes_) return made;
    made.bias = at.workspace + CUdeviceptr(bias_at_);
    ORR_DRIVER(cuMemcpyAsync, made.bias, at.bias, bias_bytes_, stream);
    ORR_DRIVER(cuMemsetD8Async, made.bias + CUdeviceptr(bias_bytes_), 0,
               copied_bytes_ - bias_bytes_, stream);
    return made;
  }

  void after(CUstream stream, const ProductPlaces& at, const ProductPlaces& made) const {
    product_->after(stream, at, made);
  }

 private:
  std::optional<Padding> product_;
  uint64_t bias_bytes_ = 0, copied_bytes_ = 0;  // as it is; with zeros behind, 0: not copied
  uint64_t bias_at_ = 0;                        // in the workspace
};

uint64_t measure(const orr_op& op) {
  if (is_window_product(op)) return 0;
  const Epilogue epilogue(op);
  const orr_op matmul = epilogue.take_apart(op).matmul;
  MatmulShape shape(matmul);
  const auto padded = PaddedEpilogue::of(matmul, epilogue, shape);
  return std::max(matmul_family.measure(matmul), padded ? padded->workspace() : 0);
}

class MatmulPointwise : public Prepared {
 public:
  explicit MatmulPointwise(const orr_op& op) : epilogue_(op), rest_in_(size_t(op.n_in) - 1) {
    const Epilogue::Apart apart = epilogue_.take_apart(op);
    matmul_ = matmul_family.prepare(apart.matmul), rest_ = pointwise_family.prepare(apart.rest);
    MatmulShape shape(apart.matmul);
    if (shape.g * shape.m * shape.n * shape.k == 0) return;
    padded_ = PaddedEpilogue::of(apart.matmul, epilogue_, shape);
    shape_.emplace(shape);
    alignment_ = alignment_of(shape);
    one_.emplace(shape, alignment_, true, epilogue_);
    if (!one_->usable()) one_.reset();
  }

  void launch(CUstream stream, const Buffers& buffers) override {
    const Epilogue& e = epilogue_;
    const CUdeviceptr y = buffers.out[e.result];
    const auto in = [&](int i) { return i < 0 ? 0 : buffers.in[i]; };
    const CUdeviceptr aux = e.kept < 0 ? in(e.before) : buffers.out[e.kept];
    const ProductPlaces at{buffers.in[0], buffers.in[1], y,  buffers.workspace,
                           in(e.bias),    in(e.added),   aux};
    const bool aligned =
        alignment_.fits(at) && (at.bias | at.added | at.aux) % whole_alignment == 0;
    if (one_ && aligned) {
      const ProductPlaces made = padded_ ? padded_->before(stream, *shape_, at) : at;
      one_->launch(stream, made);
      if (padded_) padded_->after(stream, at, made);
      return;
    }
    matmul_->launch(stream, {buffers.in, &y, buffers.workspace});
    std::copy_n(buffers.in + 1, rest_in_.size(), rest_in_.begin());
    rest_in_[0] = y;
    rest_->launch(stream, {rest_in_.data(), buffers.out, 0});
  }

 private:
  Epilogue epilogue_;
  std::vector<CUdeviceptr> rest_in_;
  std::unique_ptr<Prepared> matmul_, rest_;
  std::optional<MatmulShape> shape_;  // with padding
  std::optional<PaddedEpilogue> padded_;
  std::optional<Product> one_;
  Alignment alignment_{1, 1, 1};
};

std::unique_ptr<Prepared> prepare(const orr_op& op) {
  if (is_window_product(op)) return window_product_bias_family.prepare(op);
  return std::make_unique<MatmulPointwise>(op);
}

}  // namespace

const Family matmul_pointwise_family = {"matmul_pointwise", supports, measure, prepare};

}  // namespace orr_cuda
