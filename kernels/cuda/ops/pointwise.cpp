// SPDX-License-Identifier: Apache-2.0
//
// pointwise: one generated kernel per expression and layout, compiled when the op is prepared.
#include <algorithm>
#include <map>
#include <vector>

#include "../function.h"
#include "../merge.h"
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

// Ops that are no rows of neighbours are merged up to so many elements, such as the taps of a
// turned weight: what a larger one takes hides its launch, and a table is one more kernel to
// compile.
constexpr int64_t kSmall = 1 << 20;

// What ops of one source share.
struct Functions {
  Function single = nullptr, vector = nullptr;
  std::string table;  // the source of `many`, once there were several such ops at a time
  Function many = nullptr;
  int ops = 0;

  // What launches that are recorded may become one with; null: they do not. It was compiled
  // meanwhile.
  Function merged() {
    if (!many && !table.empty()) many = function_of(module_of(table), "pointwise_many");
    return many;
  }
};

// Kept as their modules are.
Functions& functions_of(const orr_op& op, const Walk& walk) {
  static std::map<CUmodule, Functions> kept;
  const CUmodule module = module_of(pointwise_source(op, walk));
  Functions& f = kept[module];
  if (!f.single) f.single = function_of(module, "pointwise_single");
  if (!f.vector && walk.vector > 1) f.vector = function_of(module, "pointwise_vector");
  if (f.table.empty() && f.ops > 0 && (walk.is_flat() || walk.elements <= kSmall))
    request_module(f.table = pointwise_table_source(op, walk));
  return f;
}

Reach reach_of(const Walk& walk, size_t tensor) {
  const std::vector<int64_t>& strides = walk.strides[tensor];
  const auto bytes = [&](int64_t n) { return static_cast<uint64_t>(n * walk.bytes[tensor]); };
  const uint64_t all = bytes(walk.last(strides) + 1);
  if (strides.size() != 2 || strides[1] != 1 || strides[0] < walk.dims[1]) return Reach(all);
  return {all, bytes(walk.dims[1]), bytes(strides[0])};
}

class Pointwise : public Prepared {
 public:
  explicit Pointwise(const orr_op& op) : walk_(op) {
    if (walk_.elements == 0) return;
    functions_ = &functions_of(op, walk_);
    ++functions_->ops;
    now_.threads = pointwise_block, now_.elements = static_cast<uint64_t>(walk_.elements);
    now_.inputs = static_cast<size_t>(op.n_in);
    now_.addresses.resize(walk_.strides.size());
    for (size_t t = 0; t < walk_.strides.size(); ++t) now_.reaches.push_back(reach_of(walk_, t));
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
    const auto alone = [&] {
      void* arguments[] = {now_.addresses.data(), &now_.elements};  // index_t is the low part
      enqueue_packed(stream, vector ? functions_->vector : functions_->single, {now_.blocks},
                     {now_.threads}, 0, arguments);
    };
    const auto recording = recordings().find(stream);
    if (recording == recordings().end()) return alone();
    now_.many = vector || !functions_->vector ? functions_->merged() : nullptr;
    recording->second.add(now_, alone);
  }

 private:
  Walk walk_;
  Functions* functions_ = nullptr;
  PointwiseLaunch now_;
};

}  // namespace

const Family pointwise_family = {"pointwise", supports, nullptr, prepare_as<Pointwise>};

}  // namespace orr_cuda
