// SPDX-License-Identifier: Apache-2.0
//
// argmax, topk and categorical.
#include "../device/sample.h"

#include <orrery/sdk/kind_checks.hpp>

#include "fold_launch.h"
#include "row_launch.h"

namespace orr_cuda {
namespace {

void supports_argmax(const orr_op& op, orr_support& out) {
  require_argmax(op);
  require_rows(op.in[0]);
  orr::copy_text(out.numerics, "exact");
}

void supports_topk(const orr_op& op, orr_support& out) {
  require_topk(op);
  require_rows(op.in[0]);
  orr::copy_text(out.numerics, "exact");
}

struct Best : Prepared {
  explicit Best(const orr_op& op)
      : rows_(std::string("topk_") + number_name(op.in[0].dtype), op.in[0], 1),
        k_(int32_t(orr::attr_int(op, "k", 1))),
        values_(op.n_out == 2) {}

  void launch(CUstream stream, const Buffers& b) override {
    BestArgs args{};
    args.x = pointer(b.in[0]);
    args.value = values_ ? pointer(b.out[0]) : nullptr;
    args.index = static_cast<int64_t*>(pointer(b.out[values_ ? 1 : 0]));
    args.k = k_;
    rows_(stream, args);
  }

  RowLaunch rows_;
  int32_t k_;
  bool values_;
};

void supports_categorical(const orr_op& op, orr_support& out) {
  require_categorical(op);
  require_rows(op.in[0]);
  orr::copy_text(out.numerics, "cuda.categorical.1: as ops.h, exp in f64, rounded");
}

struct Categorical : Prepared {
  explicit Categorical(const orr_op& op)
      : function_(find_function(std::string("categorical_") + dtype_name(op.in[0].dtype))),
        rows_(op.in[0].dims[0]),
        columns_(int32_t(op.in[0].dims[1])),
        rng_id_(uint32_t(orr::attr_int(op, "rng_id", 0))) {}

  void launch(CUstream stream, const Buffers& b) override {
    const auto scalar = [&](int i) { return static_cast<const int64_t*>(pointer(b.in[i])); };
    const CategoricalArgs args{pointer(b.in[0]),
                               scalar(1),
                               scalar(2),
                               scalar(3),
                               static_cast<int64_t*>(pointer(b.out[0])),
                               rows_,
                               columns_,
                               rng_id_};
    enqueue(stream, function_, {unsigned(rows_)}, {kCategoricalThreads}, 0, args);
  }

  Function function_;
  int64_t rows_;
  int32_t columns_;
  uint32_t rng_id_;
};

}  // namespace

const Family argmax_family = {"argmax", supports_argmax, nullptr, prepare_as<Best>};
const Family topk_family = {"topk", supports_topk, nullptr, prepare_as<Best>};
const Family categorical_family = {"categorical", supports_categorical, nullptr,
                                   prepare_as<Categorical>};

}  // namespace orr_cuda
