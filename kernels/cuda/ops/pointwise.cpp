// SPDX-License-Identifier: Apache-2.0
//
// pointwise: one generated kernel per expression and layout, compiled when the op is prepared.
#include <algorithm>

#include "../generated.h"
#include "../modules.h"
#include "../op.h"
#include "../pointwise_source.h"

namespace orr_cuda {
namespace {

void supports(const orr_op& op, orr_support& out) {
  const Walk walk(op);
  expect_module(pointwise_source(op, walk));
  orr::copy_text(out.numerics, "cuda.pointwise/2");
  out.strided_in = out.strided_out = ~0u;
  for (int i = op.n_in - 1; i >= 0; --i)
    if (op.in[i].dtype == op.out[0].dtype &&
        walk.strides[size_t(i)] == walk.strides[size_t(op.n_in)])
      out.inplace = i + 1;
}

class Pointwise : public Prepared {
 public:
  explicit Pointwise(const orr_op& op) : walk_(op) {
    if (walk_.elements == 0) return;
    functions_ = &Generated::of(pointwise_source(op, walk_), "pointwise", walk_.vector > 1);
    if (walk_.is_flat() || walk_.elements <= kSmall)
      functions_->add_op([&] { return pointwise_table_source(op, walk_); });
    else
      functions_->add_op({});
    now_.threads = pointwise_block, now_.numbers = {static_cast<uint64_t>(walk_.elements)};
    now_.inputs = static_cast<size_t>(op.n_in);
    now_.addresses.resize(walk_.strides.size());
    for (size_t t = 0; t < walk_.strides.size(); ++t) now_.reaches.push_back(walk_.reach(t));
  }

  ~Pointwise() override {
    if (functions_) --functions_->ops;
  }

  void launch(CUstream stream, const Buffers& buffers) override {
    if (walk_.elements == 0) return;
    const auto outputs = std::copy_n(buffers.in, now_.inputs, now_.addresses.begin());
    std::copy_n(buffers.out, now_.addresses.end() - outputs, outputs);
    const bool vector = functions_->vector && walk_.aligned(now_.addresses);
    const int64_t per_block = int64_t{pointwise_block} * (vector ? walk_.vector : 1);
    now_.blocks = static_cast<unsigned>((walk_.elements + per_block - 1) / per_block);
    // index_t is the low part of the number
    void* arguments[] = {now_.addresses.data(), now_.numbers.data()};
    functions_->enqueue(stream, now_, vector, arguments);
  }

 private:
  Walk walk_;
  Generated* functions_ = nullptr;
  SmallLaunch now_;
};

}  // namespace

const Family pointwise_family = {"pointwise", supports, nullptr, prepare_as<Pointwise>};

}  // namespace orr_cuda
