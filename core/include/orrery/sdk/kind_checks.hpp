// SPDX-License-Identifier: Apache-2.0
//
// For authors of kernel plugins: what ops.h asks of the tensors of some kinds of ops.
#pragma once

#include <orrery/sdk/op_checks.hpp>

namespace orr {

// Elements of a row are neighbours.
inline void require_neighbours(const orr_tensor& t, const char* name) {
  require(t.dims[1] == 1 || t.strides[1] == 1, std::string("the last stride of ") + name + " is 1");
}

// Labels and w stand behind the logits; lse: 0 if it is no input.
inline void require_loss_inputs(const orr_op& op, int logits, int lse) {
  require_rank(op.in[logits], 2, "logits");
  require_neighbours(op.in[logits], "logits");
  require_real(op.in[logits], "logits");
  int64_t rows = op.in[logits].dims[0];
  int32_t wide = wide_dtype(op.in[logits].dtype);
  require(op.in[logits].dims[1] > 0, "there must be a class");
  require_index(op.in[logits + 1], "labels");
  require_shape(op.in[logits + 1], {rows}, "labels");
  require_vector(op.in[logits + 2], wide, rows, "w");
  if (lse) require_vector(op.in[lse], wide, rows, "lse");
}

// The gradient of the logits x.
inline void require_slope(const orr_tensor& dlogits, const orr_tensor& x) {
  require_dtype(dlogits, x.dtype, "dlogits");
  require_shape(dlogits, {x.dims[0], x.dims[1]}, "dlogits");
  require_neighbours(dlogits, "dlogits");
}

inline void require_cross_entropy(const orr_op& op) {
  const bool both = op.n_in == 4;
  require_counts(op, both ? 4 : 3, both ? 3 : 2);
  require_loss_inputs(op, 0, 0);
  const int32_t wide = wide_dtype(op.in[0].dtype);
  for (int i = 0; i < 2; ++i) require_vector(op.out[i], wide, op.in[0].dims[0], "loss or lse");
  if (!both) return;
  require_vector(op.in[3], wide, op.in[0].dims[0], "dloss");
  require_slope(op.out[2], op.in[0]);
}

inline void require_cross_entropy_grad(const orr_op& op) {
  require_counts(op, 5, 1);
  require_loss_inputs(op, 1, 4);
  const orr_tensor& x = op.in[1];
  require_vector(op.in[0], wide_dtype(x.dtype), x.dims[0], "dloss");
  require_slope(op.out[0], x);
}

inline void require_gather(const orr_op& op) {
  require_counts(op, 2, 1);
  require_rank(op.in[0], 2, "table");
  require_rank(op.in[1], 1, "index");
  require_index(op.in[1], "index");
  require_dtype(op.out[0], op.in[0].dtype, "y");
  require_shape(op.out[0], {op.in[1].dims[0], op.in[0].dims[1]}, "y");
}

inline void require_scatter_add(const orr_op& op) {
  require_counts(op, op.n_in == 3 ? 3 : 2, 1);
  require_rank(op.in[0], 1, "index");
  require_index(op.in[0], "index");
  require_rank(op.in[1], 2, "dy");
  if (op.n_in == 3) {
    require_dtype(op.in[2], op.out[0].dtype, "base");
    require_shape(op.in[2], {attr_int(op, "rows", 0), op.in[1].dims[1]}, "base");
    require(Leaves(op).nodes() == 1, "with a base all leaves must be there");
  }
  require(op.in[1].dtype != ORR_BOOL, "dy must not be bool");
  require_sum(op.out[0], op.in[1].dtype, "y");
  require_shape(op.in[1], {op.in[0].dims[0], op.in[1].dims[1]}, "dy");
  require(attr_int(op, "rows", -1) >= 0, "rows must be given");
  require_leaves(op, op.in[0].dims[0]);
  require_nodes(op, op.out[0], {attr_int(op, "rows", 0), op.in[1].dims[1]}, "y");
}

inline void require_gather_matmul(const orr_op& op) {
  require_counts(op, 3, 1);
  require(attr_int(op, "leaf_n", 1) == 1, "no leaves here");
  const orr_tensor &x = op.in[0], &w = op.in[1], &index = op.in[2], &y = op.out[0];
  require_rank(x, 2, "x");
  require_real(x, "x");
  require_rank(w, 3, "w");
  require_dtype(w, x.dtype, "w");
  require_index(index, "index");
  require_shape(index, {x.dims[0]}, "index");
  require_rank(y, 2, "y");
  require_dtype(y, x.dtype, "y");
  require_shape(y, {x.dims[0], y.dims[1]}, "y");
  require_shape(w, {w.dims[0], x.dims[1], y.dims[1]}, "w");
  require(w.strides[1] == 1 || w.strides[2] == 1, "one of the last two strides of w is 1");
}

inline void require_scatter_matmul(const orr_op& op) {
  require_counts(op, 3, 1);
  const orr_tensor &x = op.in[0], &dy = op.in[1], &index = op.in[2];
  require_index(index, "index");
  require_rank(index, 1, "index");
  require_rank(x, 2, "x");
  require_real(x, "x");
  require_shape(x, {index.dims[0], x.dims[1]}, "x");
  require_rank(dy, 2, "dy");
  require_dtype(dy, x.dtype, "dy");
  require_shape(dy, {index.dims[0], dy.dims[1]}, "dy");
  require_sum(op.out[0], x.dtype, "dw");
  require(attr_int(op, "matrices", -1) >= 0, "matrices must be given");
  require_leaves(op, index.dims[0]);
  require_nodes(op, op.out[0], {attr_int(op, "matrices", 0), x.dims[1], dy.dims[1]}, "dw");
}

// x[O,D,I] is input 0, its part is [O,n,I].
inline void require_part(const orr_op& op, const orr_tensor& part, const orr_tensor& at) {
  const orr_tensor& x = op.in[0];
  require_rank(x, 3, "x");
  require_rank(part, 3, "the slice");
  require_dtype(part, x.dtype, "the slice");
  require_shape(part, {x.dims[0], part.dims[1], x.dims[2]}, "the slice");
  require(part.dims[1] <= x.dims[1], "the slice is longer than the dim it is cut from");
  require_scalar(at, "at");
}

inline void require_slice_at(const orr_op& op) {
  require_counts(op, 2, 1);
  require_part(op, op.out[0], op.in[1]);
}

inline void require_update_slice(const orr_op& op) {
  require_counts(op, 3, 1);
  require_part(op, op.in[1], op.in[2]);
  require_dtype(op.out[0], op.in[0].dtype, "y");
  require_shape(op.out[0], {op.in[0].dims[0], op.in[0].dims[1], op.in[0].dims[2]}, "y");
}

inline void require_iota(const orr_op& op) {
  require_counts(op, 0, 1);
  require_rank(op.out[0], 1, "y");
  require(op.out[0].dtype != ORR_BOOL, "y must not be bool");
  require_computed(op.out[0], "y");
}

inline void require_reduce(const orr_op& op) {
  require_counts(op, 1, 1);
  const orr_tensor &x = op.in[0], &y = op.out[0];
  require_rank(x, 3, "x");
  require_computed(x, "x");
  std::string_view fn = attr_text(op, "fn", "");
  const bool adds = fn == "sum" || fn == "sumsq";
  require(adds || fn == "max" || fn == "min", "fn must be \"sum\", \"sumsq\", \"max\" or \"min\"");
  if (adds)
    require_sum(y, x.dtype, "y");
  else
    require_dtype(y, x.dtype, "y");
  require(x.dtype != ORR_BOOL || y.dtype != ORR_BOOL || !adds, "a sum of BOOL must be i64");
  require(adds || x.dims[1] > 0, "nothing has no largest or smallest element");
  if (!attr(op, "leaf_n")) return require_shape(y, {x.dims[0], x.dims[2]}, "y");
  require(fn == "sum" && x.dims[0] == 1, "leaves need a sum with O = 1");
  require_leaves(op, x.dims[1]);
  require_nodes(op, y, {x.dims[2]}, "y");
}

inline void require_reduce_each(const orr_op& op) {
  require(op.n_in >= 1 && op.n_in == op.n_out, "as many outputs as inputs are needed");
  require_real(op.in[0], "x");
  const std::string_view fn = attr_text(op, "fn", "");
  require(fn == "sum" || fn == "sumsq", "fn must be \"sum\" or \"sumsq\"");
  for (int i = 0; i < op.n_in; ++i) {
    require_rank(op.in[i], 1, "x");
    require_dtype(op.in[i], op.in[0].dtype, "x");
    require_sum(op.out[i], op.in[0].dtype, "y");
    require_shape(op.out[i], {}, "y");
  }
}

inline void require_filled_rows(const orr_op& op) {
  require_rank(op.in[0], 2, "x");
  require_computed(op.in[0], "x");
  require(op.in[0].dims[1] > 0, "rows must not be empty");
}

inline void require_argmax(const orr_op& op) {
  require_counts(op, 1, 1);
  require_filled_rows(op);
  require_vector(op.out[0], ORR_I64, op.in[0].dims[0], "y");
}

inline void require_topk(const orr_op& op) {
  require_counts(op, 1, 2);
  require_filled_rows(op);
  int64_t k = attr_int(op, "k", 0);
  require(k >= 1 && k <= op.in[0].dims[1], "k must lie in 1..C");
  require_dtype(op.out[0], op.in[0].dtype, "values");
  require_shape(op.out[0], {op.in[0].dims[0], k}, "values");
  require_dtype(op.out[1], ORR_I64, "indices");
  require_shape(op.out[1], {op.in[0].dims[0], k}, "indices");
}

inline void require_categorical(const orr_op& op) {
  require_counts(op, 4, 1);
  require_filled_rows(op);
  require_real(op.in[0], "logits");
  require_scalar(op.in[1], "seed");
  require_scalar(op.in[2], "step");
  require_scalar(op.in[3], "base");
  require_vector(op.out[0], ORR_I64, op.in[0].dims[0], "y");
}

// The windows of fold: one to three windowed dims as three, of which the first may have the extent
// 1. REQUIRES: the op has the attributes and ranks.
struct Windows {
  explicit Windows(const orr_op& op) {
    const orr_attr &strides = *attr(op, "stride"), &dilations = *attr(op, "dilation");
    const int n = strides.count, shift = 3 - n;
    for (int i = 0; i < n; ++i) {
      count[shift + i] = op.in[0].dims[1 + i], size[shift + i] = op.in[0].dims[1 + n + i];
      length[shift + i] = op.out[0].dims[1 + i];
      stride[shift + i] = strides.ints[i], dilation[shift + i] = dilations.ints[i];
    }
    lead = op.in[0].dims[0], width = op.in[0].dims[1 + 2 * n];
  }
  int64_t lead, width;
  int64_t count[3] = {1, 1, 1}, size[3] = {1, 1, 1}, length[3] = {1, 1, 1};
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
};

inline void require_fold(const orr_op& op) {
  require_counts(op, 1, 1);
  const orr_attr *stride = attr(op, "stride"), *dilation = attr(op, "dilation");
  require(stride && dilation && stride->count >= 1 && stride->count <= 3 &&
              dilation->count == stride->count,
          "stride and dilation must have one to three numbers each");
  require_rank(op.in[0], 2 * stride->count + 2, "x");
  require_rank(op.out[0], stride->count + 2, "y");
  require_dtype(op.out[0], op.in[0].dtype, "y");
  require(op.in[0].dtype != ORR_BOOL, "x must not be bool");
  require_computed(op.in[0], "x");
  const Windows g(op);
  bool fits = op.out[0].dims[0] == g.lead && op.out[0].dims[stride->count + 1] == g.width;
  for (int d = 0; d < 3; ++d)
    fits = fits && g.stride[d] > 0 && g.dilation[d] > 0 && g.count[d] > 0 && g.size[d] > 0 &&
           (g.count[d] - 1) * g.stride[d] + (g.size[d] - 1) * g.dilation[d] < g.length[d];
  require(fits, "the windows do not fit into y");
}

}  // namespace orr
