// SPDX-License-Identifier: Apache-2.0
//
// argmax, topk and categorical.
#include "../device/sample.h"

#include <orrery/sdk/kind_checks.hpp>

#include "fold_launch.h"
#include "row_launch.h"

namespace orr_cuda {
namespace {

template <auto require_op>
void supports_best(const orr_op& op, orr_support& out) {
  require_op(op);
  require_rows(op.in[0]);
  out.strided_in = 1;
  orr::copy_text(out.numerics, "exact");
}

struct Best : Prepared {
  explicit Best(const orr_op& op)
      : rows_(std::string("topk_") + number_name(op.in[0].dtype), op.in[0], 1),
        values_(op.n_out == 2) {
    args_.k = int32_t(orr::attr_int(op, "k", 1)), args_.step = op.in[0].strides[0];
  }

  void launch(CUstream stream, const Buffers& b) override {
    args_.x = pointer(b.in[0]);
    args_.value = values_ ? pointer(b.out[0]) : nullptr;
    args_.index = pointer<int64_t>(b.out[values_]);
    rows_(stream, args_);
  }

  RowLaunch rows_;
  bool values_;
  BestArgs args_{};
};

void supports_categorical(const orr_op& op, orr_support& out) {
  require_categorical(op);
  require_rows(op.in[0]);
  orr::copy_text(out.numerics, "cuda.categorical.1: as ops.h, exp in f64, rounded");
}

struct Categorical : Prepared {
  explicit Categorical(const orr_op& op)
      : function_(find_function(function_name("categorical", op.in[0].dtype))) {
    args_.rows.rows = op.in[0].dims[0], args_.rows.columns = int32_t(op.in[0].dims[1]);
    args_.rows.team = kCategoricalThreads;
    args_.rng_id = uint32_t(orr::attr_int(op, "rng_id", 0));
  }

  void launch(CUstream stream, const Buffers& b) override {
    args_.logits = pointer(b.in[0]), args_.y = pointer<int64_t>(b.out[0]);
    args_.seed = pointer<int64_t>(b.in[1]), args_.step = pointer<int64_t>(b.in[2]);
    args_.base = pointer<int64_t>(b.in[3]);
    enqueue(stream, function_, {unsigned(args_.rows.rows)}, {kCategoricalThreads},
            kCategoricalThreads / 32 * sizeof(double), args_);
  }

  Function function_;
  CategoricalArgs args_{};
};

}  // namespace

const Family argmax_family = {"argmax", supports_best<require_argmax>, nullptr, prepare_as<Best>};
const Family topk_family = {"topk", supports_best<require_topk>, nullptr, prepare_as<Best>};
const Family categorical_family = {"categorical", supports_categorical, nullptr,
                                   prepare_as<Categorical>};

}  // namespace orr_cuda
