// SPDX-License-Identifier: Apache-2.0
//
// pointwise: one generated kernel per expression and layout, compiled when the op is prepared.
#include <algorithm>
#include <cstring>
#include <vector>

#include "../compiler.h"
#include "../function.h"
#include "../op.h"
#include "../pointwise_source.h"

namespace orr_cuda {
namespace {

bool equal_layout(const orr_tensor& a, const orr_tensor& b) {
  return a.dtype == b.dtype && a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims) &&
         std::equal(a.strides, a.strides + a.rank, b.strides);
}

void supports(const orr_op& op, orr_support& out) {
  pointwise_source(op, Walk(op));
  orr::copy_text(out.numerics, "cuda.pointwise/1");
  out.strided_in = out.strided_out = ~0u;
  for (int i = 0; i < op.n_in && out.inplace == 0; ++i)
    if (equal_layout(op.in[i], op.out[0])) out.inplace = i + 1;
}

Function function(CUmodule module, const char* name) {
  Function found = nullptr;
  check(driver().cuModuleGetFunction(&found, module, name), "cuModuleGetFunction");
  return found;
}

class Pointwise : public Prepared {
 public:
  explicit Pointwise(const orr_op& op) : walk_(op), inputs_(static_cast<size_t>(op.n_in)) {
    if (walk_.elements == 0) return;
    const CUmodule module = module_of(pointwise_source(op, walk_));
    single_ = function(module, "pointwise_single");
    if (walk_.vector > 1) vector_ = function(module, "pointwise_vector");
    addresses_.resize(walk_.strides.size());
    for (size_t t = 0; t < addresses_.size(); ++t) alignments_.push_back(alignment(op, t));
  }

  void launch(CUstream stream, const Buffers& buffers) override {
    if (walk_.elements == 0) return;
    std::copy(buffers.in, buffers.in + inputs_, addresses_.begin());
    std::copy(buffers.out, buffers.out + (addresses_.size() - inputs_),
              addresses_.begin() + static_cast<ptrdiff_t>(inputs_));
    const bool vector = vector_ && aligned();
    const int64_t per_block = int64_t{pointwise_block} * (vector ? walk_.vector : 1);
    const auto blocks = static_cast<unsigned>((walk_.elements + per_block - 1) / per_block);
    uint64_t elements = static_cast<uint64_t>(walk_.elements);  // of which index_t is the low part
    void* arguments[] = {addresses_.data(), &elements};
    enqueue_packed(stream, vector ? vector_ : single_, {blocks}, {pointwise_block}, 0, arguments);
  }

 private:
  // What one load or store of the vector kernel needs.
  CUdeviceptr alignment(const orr_op& op, size_t t) const {
    const orr_tensor& x = t < inputs_ ? op.in[t] : op.out[t - inputs_];
    if (walk_.strides[t].back() == 0) return 1;
    return static_cast<CUdeviceptr>(std::min<int64_t>(16, walk_.vector * orr_dtype_bytes(x.dtype)));
  }
  bool aligned() const {
    for (size_t t = 0; t < addresses_.size(); ++t)
      if (addresses_[t] % alignments_[t] != 0) return false;
    return true;
  }

  Walk walk_;
  size_t inputs_;
  Function single_ = nullptr, vector_ = nullptr;
  std::vector<CUdeviceptr> addresses_, alignments_;
};

std::unique_ptr<Prepared> prepare(const orr_op& op) { return std::make_unique<Pointwise>(op); }

}  // namespace

extern const Family pointwise_family;
const Family pointwise_family = {"pointwise", supports, nullptr, prepare};

}  // namespace orr_cuda
