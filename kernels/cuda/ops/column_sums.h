// SPDX-License-Identifier: Apache-2.0
//
// Sums over the rows of what an expression makes: a generated kernel adds blocks of rows, the later
// stages of fold_launch.h add these. Where a segment has few blocks, the kernel adds them itself.
#pragma once

#include <vector>

#include "../generated.h"
#include "../pointwise_source.h"
#include "fold_launch.h"

namespace orr_cuda {

// A pointwise op of the plugin's own.
class Terms {
 public:
  // `out` is what each of its outputs is; registers have that dtype.
  explicit Terms(const orr_tensor& out) : out_(out) {}
  Terms(const Terms&) = delete;

  // Each returns a register. An input is of the shape of the outputs up to stride 0.
  int32_t input(const orr_tensor& x);
  int32_t push(int32_t fn, int32_t a, int32_t b) { return push(fn, out_.dtype, a, b); }
  // The op whose outputs are these registers. Borrows from this object.
  orr_op op(const std::vector<int32_t>& stored);

 private:
  int32_t push(int32_t fn, int32_t dtype, int32_t a, int32_t b);

  orr_tensor out_;
  std::vector<orr_tensor> in_, outs_;
  std::vector<orr_instr> instrs_;
  std::vector<int32_t> stored_;
  orr_expr expr_{};
};

// Elements of the shape of x as what they are added in.
orr_tensor accumulators(orr_tensor x);

// For `arrays` sums over the rows of x[outer, length, columns]. Pure.
FoldPlan column_plan(const orr_op& op, int64_t outer, int64_t length, int64_t columns, int arrays);

class ColumnSums : public Prepared {
 public:
  // The outputs of the pointwise op that are stored.
  struct Results {
    bool given = false;   // among the launch's buffers, before the sums
    uint64_t unread = 0;  // of these, a bit for each that is not stored all the same
  };
  // Folds the outputs of a pointwise op. The sums have `dtype` if they are rounded, else that of
  // accumulators. REQUIRES: the device is open; the plan is a column_plan.
  ColumnSums(const orr_op& op, const FoldPlan& plan, int32_t dtype, int32_t fn, bool rounded,
             const Results& results);
  ~ColumnSums() override;
  void launch(CUstream stream, const Buffers& b) override;

 private:
  // The threads that stand side by side, each for so many columns, and all of the launch.
  struct Shape {
    int64_t side;
    unsigned blocks, threads;
  };
  Shape shape(int64_t width) const;
  void note_tensors(int32_t dtype);

  Walk walk_;
  FoldPlan plan_;
  int64_t blocks_;  // of rows, in a segment
  int64_t bytes_;   // of an accumulator
  bool together_;   // the kernel adds them
  FoldLaunch fold_;
  size_t inputs_, stored_;
  Generated* functions_ = nullptr;
  SmallLaunch now_;
};

}  // namespace orr_cuda
