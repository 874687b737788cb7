// SPDX-License-Identifier: Apache-2.0
#include "row_op.h"

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

void supports(const orr_op& op, orr_support& out) {
  const Kind& kind = kind_of(op);
  require_tensors(op, kind.in, kind.out);
  require(kind.name.starts_with("softmax") || op.in[0].dims[1] > 0, "rows must not be empty");
  out.inplace = 1;
  const char* exp = kind.name == "softmax" ? ", exp of the device" : "";
  orr::copy_text(out.numerics, std::string("cuda.") + op.kind + ".1: sums as in ops.h" + exp);
}

}  // namespace

void require_tensors(const orr_op& op, std::string_view in, std::string_view out) {
  require_counts(op, int(in.size()), int(out.size()));
  require_rows(op.in[0]);
  require_real(op.in[0], "x");
  require_leaves(op, op.in[0].dims[0]);
  for (int i = 0; i < op.n_in; ++i) require_tensor(op, op.in[i], in[size_t(i)]);
  for (int i = 0; i < op.n_out; ++i) require_tensor(op, op.out[i], out[size_t(i)]);
}

void point_to(RowArgs& args, std::string_view names, const CUdeviceptr* tensors) {
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

}  // namespace orr_cuda
