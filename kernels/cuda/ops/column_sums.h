// SPDX-License-Identifier: Apache-2.0
//
// Sums over the rows of what an expression makes: a generated kernel adds blocks of rows, the later
// stages of fold_launch.h add these.
#pragma once

#include <vector>

#include "../pointwise_source.h"
#include "fold_launch.h"

namespace orr_cuda {

class ColumnSums {
 public:
  // The shapes of the sums of the first `arrays` outputs over all dims but the last; pure.
  static FoldPlan plan_of(const orr_op& op, const orr_tensor& rows, int arrays);

  // For the outputs of a pointwise op, which are stored too if `stores`. The sums have `dtype` if
  // they are rounded, else that of accumulators. REQUIRES: the device is open.
  ColumnSums(const orr_op& op, const FoldPlan& plan, int32_t dtype, bool rounded, bool stores);

  // `out` is not read if the outputs are not stored; sums.out are the sums.
  void launch(CUstream stream, const CUdeviceptr* in, const CUdeviceptr* out, const Buffers& sums);

 private:
  Walk walk_;
  FoldPlan plan_;
  FoldLaunch fold_;
  size_t inputs_;
  bool stores_;
  Function single_, vector_ = nullptr;
  std::vector<CUdeviceptr> addresses_;
};

}  // namespace orr_cuda
