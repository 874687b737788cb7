// SPDX-License-Identifier: Apache-2.0
//
// Sums over the rows of what an expression makes: a generated kernel adds blocks of rows, the later
// stages of fold_launch.h add these.
#pragma once

#include <vector>

#include "../pointwise_source.h"
#include "fold_launch.h"

namespace orr_cuda {

// A pointwise op whose outputs are folded and not stored: accumulators of tensors of one shape.
class Terms {
 public:
  explicit Terms(const orr_tensor& rows);
  Terms(const Terms&) = delete;

  // Each returns a register. An input is of the shape of the rows up to stride 0.
  int32_t input(const orr_tensor& x);
  int32_t push(int32_t fn, int32_t a, int32_t b) { return push(fn, wide_, a, b); }
  void store(int32_t reg) { stored_.push_back(reg); }
  // Borrows from this object.
  orr_op op();

 private:
  int32_t push(int32_t fn, int32_t dtype, int32_t a, int32_t b);

  orr_tensor out_;
  int32_t wide_;  // the dtype of accumulators
  std::vector<orr_tensor> in_, outs_;
  std::vector<orr_instr> instrs_;
  std::vector<int32_t> stored_;
  orr_expr expr_{};
};

class ColumnSums {
 public:
  // For the outputs of a pointwise op, which are stored too if `stores`. The results have `dtype`
  // if they are rounded, else that of accumulators. REQUIRES: the device is open; entries of the
  // plan are blocks of ORR_SUM_ROWS.
  ColumnSums(const orr_op& op, const FoldPlan& plan, int32_t dtype, int32_t fn, bool rounded,
             bool stores);

  // `out` is not read if the outputs are not stored; sums.out are the results.
  void launch(CUstream stream, const CUdeviceptr* in, const CUdeviceptr* out, const Buffers& sums);

 private:
  Walk walk_;
  FoldPlan plan_;
  FoldLaunch fold_;
  size_t inputs_;
  bool stores_;
  Function single_ = nullptr, vector_ = nullptr;
  std::vector<CUdeviceptr> addresses_;
};

}  // namespace orr_cuda
