// SPDX-License-Identifier: Apache-2.0
#include "row_op.h"

#include <string>
#include <vector>

#include "column_sums.h"

namespace orr_cuda {
namespace {

struct Kind {
  std::string_view name, in, out;
  const char* function;
  int staged;  // rows in shared memory
};
constexpr Kind kinds[] = {
    {"softmax", "x", "y", "softmax", 1},         {"softmax_grad", "dx", "y", "softmax_grad", 2},
    {"layernorm", "xwb", "ymr", "layernorm", 1}, {"layernorm_grad", "dxwmr", "y", "input_grad", 2},
    {"rmsnorm", "xw", "yr", "rmsnorm", 1},       {"rmsnorm_grad", "dxwr", "y", "input_grad", 2}};

const Kind& kind_of(const orr_op& op) {
  const Kind* kind = kinds;
  while (kind->name != op.kind) ++kind;
  return *kind;
}

void require_tensor(const orr_op& op, const orr_tensor& t, char name) {
  const int32_t dtype = op.in[0].dtype;
  const int64_t rows = op.in[0].dims[0], columns = op.in[0].dims[1];
  switch (name) {
    case 'w':
    case 'b': return require_vector(t, dtype, columns, "w or b");
    case 'm':
    case 'r': return require_vector(t, wide_dtype(dtype), rows, "mean or rstd");
    case 'n': require_nodes(op, t, {columns}, "a sum"); break;
    default: require_shape(t, {rows, columns}, "rows");
  }
  require_dtype(t, dtype, "rows or sums");
}

// Throws Unsupported unless the op has these tensors (row_op.h), the first of which is rows.
void require_tensors(const orr_op& op, std::string_view in, std::string_view out) {
  require_counts(op, int(in.size()), int(out.size()));
  require_rows(op.in[0]);
  require_real(op.in[0], "x");
  require_leaves(op, op.in[0].dims[0]);
  for (int i = 0; i < op.n_in; ++i) require_tensor(op, op.in[i], in[size_t(i)]);
  for (int i = 0; i < op.n_out; ++i) require_tensor(op, op.out[i], out[size_t(i)]);
}

// Sets the arguments that have these names.
void point_to(RowTensors& args, std::string_view names, const CUdeviceptr* tensors) {
  for (const char name : names) {
    void* const at = pointer(*tensors++);
    switch (name) {
      case 'd': args.dy = at; break;
      case 'x': args.x = at; break;
      case 'w': args.w = at; break;
      case 'b': args.b = at; break;
      case 'y': args.y = at; break;
      case 'm': args.mean = at; break;
      case 'r': args.rstd = at; break;
    }
  }
}

void supports(const orr_op& op, orr_support& out) {
  const Kind& kind = kind_of(op);
  require_tensors(op, kind.in, kind.out);
  require(kind.name.starts_with("softmax") || op.in[0].dims[1] > 0, "rows must not be empty");
  out.inplace = 1;
  const char* how =
      kind.name == "softmax" ? ".2: sums as in ops.h, exp of the device" : ".1: sums as in ops.h";
  orr::copy_text(out.numerics, std::string("cuda.") + op.kind + how);
}

// The gradients of norms that are sums over the rows: norm_param_grad, and norm_grad, which makes
// the input gradient, too, and the sum of what it stores, in one pass over the rows.

bool is_rms(const orr_op& op) { return orr::attr_int(op, "rms", 0) == 1; }

FoldPlan plan_of(const orr_op& op, int sums) {
  return FoldPlan(op, 1, op.in[0].dims[0], op.in[0].dims[1], sums, ORR_SUM_ROWS);
}

void supports_param(const orr_op& op, orr_support& out) {
  require_tensors(op, is_rms(op) ? "dxr" : "dxmr", is_rms(op) ? "n" : "nn");
  orr::copy_text(out.numerics, "cuda.norm_param_grad.1: sums as in ops.h");
}

FoldPlan param_plan(const orr_op& op) {
  return column_plan(op, 1, op.in[0].dims[0], op.in[0].dims[1], op.n_out);
}

uint64_t measure_param(const orr_op& op) { return param_plan(op).workspace(); }

// The gradients of weight and bias are the sums of two expressions.
std::unique_ptr<Prepared> prepare_param(const orr_op& op) {
  std::vector<orr_tensor> in(op.in, op.in + op.n_in);
  for (size_t i = 2; i < in.size(); ++i)  // one for each row
    in[i].rank = 2, in[i].dims[1] = in[0].dims[1], in[i].strides[1] = 0;
  Terms terms(accumulators(in[0]));
  const int32_t dy = terms.input(in[0]);
  int32_t x = terms.input(in[1]);
  if (!is_rms(op)) x = terms.push(ORR_FN_SUB, x, terms.input(in[2]));
  std::vector<int32_t> sums = {
      terms.push(ORR_FN_MUL, terms.push(ORR_FN_MUL, dy, x), terms.input(in.back()))};
  if (!is_rms(op)) sums.push_back(dy);
  return std::make_unique<ColumnSums>(terms.op(sums), param_plan(op), in[0].dtype, kFoldSum, true,
                                      ColumnSums::Results{});
}

// The inputs of norm_grad; one more may follow, which is added to the input gradient.
std::string grad_inputs(const orr_op& op) { return is_rms(op) ? "dxwr" : "dxwmr"; }

// How many outputs it has without the sum of the first.
int gradients(const orr_op& op) { return is_rms(op) ? 2 : 3; }

bool adds(const orr_op& op) { return op.n_in > int(grad_inputs(op).size()); }

// Divides a block's shared memory (device/norm_grad.cu), and returns its bytes. Four blocks fit on
// a multiprocessor of sm_90 if rows are short.
int64_t divide_shared(const orr_op& op, NormGradArgs& a) {
  const int64_t wide = orr_dtype_bytes(wide_dtype(op.in[0].dtype)), columns = op.in[0].dims[1];
  a.columns = int32_t(columns), a.blocks = int32_t(divide_up(columns, ORR_SUM_BLOCK));
  // A multiple of 128 bytes and 32: what four teams read at once is in different banks.
  a.pitch = int32_t(((columns + 1) * orr_dtype_bytes(op.in[0].dtype) + 95) / 128 * 128 + 32);
  for (a.tile = kNormTile;; a.tile /= 2) {
    a.rows_at = int32_t(((4 + 2 * a.blocks) * a.tile + 3 * columns) * wide / 16 * 16 + 16);
    const int64_t shared = a.rows_at + (1 + (adds(op) ? 3 : 2) * a.tile) * int64_t{a.pitch};
    if (a.tile == 1 || shared <= kSharedLimit / 2) return shared;
  }
}

void supports_grad(const orr_op& op, orr_support& out) {
  const bool sums = op.n_out > gradients(op);
  require_tensors(op, grad_inputs(op) + (adds(op) ? "x" : ""),
                  std::string(is_rms(op) ? "yn" : "ynn") + (sums ? "n" : ""));
  require(op.in[0].dims[1] > 0, "rows must not be empty");
  NormGradArgs args;
  require(divide_shared(op, args) <= kMostShared, "rows too long for a block to keep their sums");
  orr::copy_text(out.numerics, "cuda.norm_grad.1: sums as in ops.h");
}

uint64_t measure_grad(const orr_op& op) { return plan_of(op, op.n_out - 1).workspace(); }

struct NormGrad : Prepared {
  explicit NormGrad(const orr_op& op)
      : inputs_(grad_inputs(op)),
        adds_(adds(op)),
        dtype_bytes_(orr_dtype_bytes(op.in[0].dtype)),
        shared_(divide_shared(op, args_)),
        plan_(plan_of(op, op.n_out - 1)),
        function_(find_function(function_name(op.kind, op.in[0].dtype))),
        fold_(plan_, op.in[0].dtype, kFoldSum, true) {
    args_.sums_y = op.n_out > gradients(op);
    args_.length = plan_.length, args_.entries = plan_.entries;
    if (shared_ > 48 << 10) allow_shared(function_, unsigned(kMostShared));
  }

  void launch(CUstream stream, const Buffers& b) override {
    const Buffers sums{b.in, b.out + 1, b.workspace};
    point_to(args_, inputs_, b.in);
    const CUdeviceptr added = adds_ ? b.in[inputs_.size()] : 0;
    args_.added = pointer(added), args_.y = pointer(b.out[0]);
    args_.sums = fold_.first(sums);
    args_.packets = (b.in[0] | b.in[1] | b.in[2] | added | b.out[0]) % 16 == 0 &&
                    plan_.columns * dtype_bytes_ % 16 == 0;
    enqueue(stream, function_, {unsigned(plan_.segments * plan_.entries)}, {kNormThreads},
            unsigned(shared_), args_);
    fold_.rest(stream, sums);
  }

  std::string inputs_;
  bool adds_;
  int64_t dtype_bytes_;
  NormGradArgs args_{};
  int64_t shared_;
  FoldPlan plan_;
  Function function_;
  FoldLaunch fold_;
};

}  // namespace

RowOp::RowOp(const orr_op& op)
    : in_(kind_of(op).in),
      out_(kind_of(op).out),
      rows_(function_name(kind_of(op).function, op.in[0].dtype), op.in[0], kind_of(op).staged),
      eps_(orr::attr_real(op, "eps", 1e-5)) {}

void RowOp::launch(CUstream stream, const Buffers& b, const Residual& residual) {
  RowArgs args{};
  point_to(args, in_, b.in);
  point_to(args, out_, b.out);
  args.bias = pointer(residual.bias), args.added = pointer(residual.added);
  args.sum = pointer(residual.sum), args.eps = eps_;
  rows_(stream, args);
}

const Family softmax_family = {"softmax", supports, nullptr, prepare_as<RowOp>};
const Family softmax_grad_family = {"softmax_grad", supports, nullptr, prepare_as<RowOp>};
const Family layernorm_family = {"layernorm", supports, nullptr, prepare_as<RowOp>};
const Family layernorm_grad_family = {"layernorm_grad", supports, nullptr, prepare_as<RowOp>};
const Family rmsnorm_family = {"rmsnorm", supports, nullptr, prepare_as<RowOp>};
const Family rmsnorm_grad_family = {"rmsnorm_grad", supports, nullptr, prepare_as<RowOp>};
const Family norm_param_grad_family = {"norm_param_grad", supports_param, measure_param,
                                       prepare_param};
const Family norm_grad_family = {"norm_grad", supports_grad, measure_grad, prepare_as<NormGrad>};

}  // namespace orr_cuda
