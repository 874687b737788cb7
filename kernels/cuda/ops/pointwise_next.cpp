// SPDX-License-Identifier: Apache-2.0
//
// pointwise_next: any expression with the sums over the rows of its first result, or first two, and
// sums of two tensors, one of them perhaps with a bias, with a norm of their rows.
#include <algorithm>
#include <set>
#include <vector>

#include "../expression.h"
#include "column_sums.h"
#include "row_op.h"

namespace orr_cuda {
namespace {

bool is_sum(const orr_op& op) { return orr::attr_text(op, "next", "") == "reduce"; }

const Family& norm_of(const orr_op& op) {
  const bool layer = orr::attr_text(op, "next", "") == layernorm_family.kind;
  require(layer || orr::attr_text(op, "next", "") == rmsnorm_family.kind, "only sums and norms");
  return layer ? layernorm_family : rmsnorm_family;
}

// The expression alone. The op has more inputs than that if a norm follows.
orr_op pointwise_of(const orr_op& op) {
  require(op.expr && op.expr->n_outputs >= 1 && op.expr->n_outputs < op.n_out, "no two ops");
  orr_op first = op;
  first.n_out = op.expr->n_outputs;
  if (!is_sum(op)) first.n_in -= &norm_of(op) == &layernorm_family ? 2 : 1;
  require(first.n_in >= 1, "nothing is read");
  return first;
}

// Into how many equal parts the rows fall that are summed apart.
int64_t parts_of(const orr_op& op) {
  const orr_tensor& sum = op.out[op.expr->n_outputs];
  return sum.rank == 2 && !orr::attr(op, "leaf_n") ? sum.dims[0] : 1;
}

int sums_of(const orr_op& op) { return op.n_out - op.expr->n_outputs; }

FoldPlan plan_of(const orr_op& op) {
  const int64_t columns = op.out[0].dims[op.out[0].rank - 1], parts = parts_of(op);
  const int64_t rows = orr::elements(op.out[0]) / columns;
  return column_plan(op, parts, parts ? rows / parts : 0, columns, sums_of(op));
}

void supports_sum(const orr_op& op, orr_support& out) {
  const orr_op first = pointwise_of(op);
  pointwise_family.supports(first, out);
  const orr_tensor &y = op.out[0], &sum = op.out[first.n_out];
  const int sums = sums_of(op);
  require(sums <= std::min(first.n_out, 2), "only one or two sums");
  require_counts(op, first.n_in, first.n_out + sums);
  require_real(y, "y");
  require(y.rank >= 2 && y.dims[y.rank - 1] > 1, "rows of more than one element are needed");
  require(orr::attr_text(op, "fn", "") == "sum", "only sums");
  require_leaves(op, orr::elements(y) / y.dims[y.rank - 1]);
  require(sum.dtype == y.dtype || sum.dtype == wide_dtype(y.dtype),
          "the dtype of the sum must be that of y or of its accumulator");
  const int64_t columns = y.dims[y.rank - 1], parts = parts_of(op);
  for (int j = 0; j < sums; ++j) {
    const orr_tensor& z = op.out[first.n_out + j];
    require(op.out[j].dtype == y.dtype && z.dtype == sum.dtype, "two sums of different dtypes");
    if (sum.rank == 2 && !orr::attr(op, "leaf_n"))
      require_shape(z, {parts, columns}, "the sum");
    else
      require_nodes(op, z, {columns}, "the sum");
  }
  if (sum.rank == 2 && !orr::attr(op, "leaf_n"))
    require(parts > 0 && orr::elements(y) / columns % parts == 0, "no equal parts of rows");
  out.strided_out = (1u << std::min(first.n_out, 31)) - 1;
  out.inplace = 0;
  orr::copy_text(out.numerics, "cuda.pointwise/2+reduce.1: sums as in ops.h");
}

// The sum of inputs that a norm's kernel makes itself: x + added, or (x + bias) + added.
struct Added {
  int x = -1, bias = -1, added = -1;  // inputs
};

// Whether an input is a row that is repeated, or else a whole tensor.
bool is_row(const orr_op& op, const orr_tensor& x) {
  int repeated = 0, dims = 0;
  for (int d = 0; d + 1 < x.rank; ++d) {
    if (op.out[0].dims[d] == 1) continue;
    ++dims, repeated += x.dims[d] == 1 || x.strides[d] == 0;
  }
  require(repeated == 0 || repeated == dims, "a tensor that is repeated otherwise than a bias");
  const int last = x.rank - 1;
  require(x.dims[last] == op.out[0].dims[last], "a tensor that is repeated along its rows");
  return repeated > 0;
}

Added read_added(const orr_op& op) {
  const std::vector<int> terms = terms_of(*op.expr, op.expr->outputs[0]);
  require(op.expr->n_outputs == 1 && std::set(terms.begin(), terms.end()).size() == terms.size() &&
              terms.size() == size_t(op.n_in),
          "not x + bias + r");
  Added found;
  for (const int& i : terms) {
    const bool last = &i == &terms.back();
    int& place = is_row(op, op.in[i]) ? found.bias : last ? found.added : found.x;
    require(place < 0, "two of one kind");
    place = i;
  }
  require(found.x >= 0 && found.added >= 0, "not the sum of two tensors");
  return found;
}

// The norm alone. Stays where it is.
struct NormOfSum {
  explicit NormOfSum(const orr_op& both) : op(both) {
    const int first = pointwise_of(both).n_in;
    orr_tensor rows = both.out[0];
    require(rows.rank >= 1 && rows.dims[rows.rank - 1] > 0, "rows must not be empty");
    const int64_t columns = rows.dims[rows.rank - 1];
    rows.dims[0] = orr::elements(rows) / columns, rows.dims[1] = columns;
    rows.rank = 2, rows.strides[0] = columns, rows.strides[1] = 1;
    in.push_back(rows), in.insert(in.end(), both.in + first, both.in + both.n_in);
    op.kind = norm_of(both).kind, op.expr = nullptr;
    op.n_in = int(in.size()), op.in = in.data(), op.n_out = both.n_out - 1, op.out = both.out + 1;
  }
  NormOfSum(const NormOfSum&) = delete;

  orr_op op;
  std::vector<orr_tensor> in;
};

void supports(const orr_op& op, orr_support& out) {
  if (is_sum(op)) return supports_sum(op, out);
  const orr_op first = pointwise_of(op);
  pointwise_family.supports(first, out);
  const int bias = read_added(first).bias;
  norm_of(op).supports(NormOfSum(op).op, out);
  out.inplace = 0, out.strided_out = 0;
  out.strided_in = bias < 0 ? 0 : 1u << bias;
}

uint64_t measure(const orr_op& op) { return is_sum(op) ? plan_of(op).workspace() : 0; }

struct AddAndNorm : Prepared {
  explicit AddAndNorm(const orr_op& op)
      : added_(read_added(pointwise_of(op))),
        others_(pointwise_of(op).n_in),
        norm_(NormOfSum(op).op),
        in_(size_t(op.n_in - others_) + 1) {}

  void launch(CUstream stream, const Buffers& b) override {
    in_[0] = b.in[added_.x];
    std::copy_n(b.in + others_, in_.size() - 1, in_.begin() + 1);
    norm_.launch(stream, {in_.data(), b.out + 1, 0},
                 {added_.bias < 0 ? 0 : b.in[added_.bias], b.in[added_.added], b.out[0]});
  }

  Added added_;
  int others_;  // where the norm's own inputs begin
  RowOp norm_;
  std::vector<CUdeviceptr> in_;  // of the norm
};

std::unique_ptr<Prepared> prepare(const orr_op& op) {
  if (!is_sum(op)) return std::make_unique<AddAndNorm>(op);
  const orr_op first = pointwise_of(op);
  const int32_t dtype = op.out[0].dtype;
  const ColumnSums::Results results{true, uint64_t(orr::attr_int(op, "unread", 0))};
  return std::make_unique<ColumnSums>(first, plan_of(op), dtype, kFoldSum,
                                      op.out[first.n_out].dtype == dtype, results);
}

}  // namespace

const Family pointwise_next_family = {"pointwise_next", supports, measure, prepare};

}  // namespace orr_cuda
