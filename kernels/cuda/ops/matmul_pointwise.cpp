// SPDX-License-Identifier: Apache-2.0
//
// matmul_pointwise by an epilogue of cuBLASLt. If the library has no algorithm with that epilogue
// for this shape, or addresses are not aligned enough, a launch runs the two ops instead.
#include <algorithm>
#include <optional>
#include <vector>

#include "../epilogue.h"
#include "../op.h"
#include "../product.h"

namespace orr_cuda {
namespace {

constexpr int64_t whole_alignment = 16;  // of what an epilogue reads and writes beside

void supports(const orr_op& op, orr_support& out) {
  require(!orr::attr(op, "leaf_n"), "no leaves here");
  const Epilogue epilogue(op);
  matmul_family.supports(epilogue.take_apart(op).matmul, out);
  orr::copy_text(out.numerics, out.numerics + epilogue.name());
  out.strided_in |= ~3u;
  if (out.strided_out) out.strided_out = ~0u;
}

uint64_t measure(const orr_op& op) {
  return matmul_family.measure(Epilogue(op).take_apart(op).matmul);
}

class MatmulPointwise : public Prepared {
 public:
  explicit MatmulPointwise(const orr_op& op) : epilogue_(op), rest_in_(size_t(op.n_in) - 1) {
    const Epilogue::Apart apart = epilogue_.take_apart(op);
    matmul_ = matmul_family.prepare(apart.matmul), rest_ = pointwise_family.prepare(apart.rest);
    const MatmulShape shape(apart.matmul);
    if (shape.g * shape.m * shape.n * shape.k == 0) return;
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
    if (one_ && aligned) return one_->launch(stream, at);
    matmul_->launch(stream, {buffers.in, &y, buffers.workspace});
    std::copy_n(buffers.in + 1, rest_in_.size(), rest_in_.begin());
    rest_in_[0] = y;
    rest_->launch(stream, {rest_in_.data(), buffers.out, 0});
  }

 private:
  Epilogue epilogue_;
  std::vector<CUdeviceptr> rest_in_;
  std::unique_ptr<Prepared> matmul_, rest_;
  std::optional<Product> one_;
  Alignment alignment_{1, 1, 1};
};

}  // namespace

const Family matmul_pointwise_family = {"matmul_pointwise", supports, measure,
                                        prepare_as<MatmulPointwise>};

}  // namespace orr_cuda
