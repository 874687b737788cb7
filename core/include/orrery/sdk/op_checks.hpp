// SPDX-License-Identifier: Apache-2.0
//
// For authors of kernel plugins: what ops.h asks of an op's tensors, as checks for `supports`. A
// check that fails throws Unsupported, whose text becomes orr_support.reason.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <initializer_list>
#include <orrery/sdk/plugin.hpp>
#include <stdexcept>
#include <string>

namespace orr {

struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void require(bool ok, const std::string& reason) {
  if (!ok) throw Unsupported(reason);
}

inline bool is_real(int32_t dtype) { return dtype >= ORR_F32 && dtype <= ORR_F16; }
inline bool is_eight_bits(int32_t dtype) { return dtype == ORR_F8_E4M3 || dtype == ORR_F8_E5M2; }
inline bool is_index(int32_t dtype) { return dtype == ORR_I32 || dtype == ORR_I64; }
// The dtype of statistics (mean, lse, loss) and of weights beside a tensor of `dtype`.
inline int32_t wide_dtype(int32_t dtype) { return dtype == ORR_F64 ? ORR_F64 : ORR_F32; }

inline bool is_contiguous(const orr_tensor& t) {
  int64_t expected = 1;
  for (int i = t.rank - 1; i >= 0; --i) {
    if (t.dims[i] == 0) return true;
    if (t.dims[i] != 1 && t.strides[i] != expected) return false;
    expected *= t.dims[i];
  }
  return true;
}

// Throws unless tensors have known dtypes, and those without a bit in `strided` are contiguous.
inline void require_layout(const orr_tensor* tensors, int n, uint32_t strided, const char* what) {
  for (int i = 0; i < n; ++i) {
    const std::string name = std::string(what) + " " + std::to_string(i);
    require(orr_dtype_bytes(tensors[i].dtype) > 0, name + " has an unknown dtype");
    require((strided >> (i < 31 ? i : 31) & 1) || is_contiguous(tensors[i]),
            name + " must be contiguous");
  }
}

// Below, `name` is the tensor's name in messages.
inline void require_counts(const orr_op& op, int n_in, int n_out) {
  require(op.n_in == n_in && op.n_out == n_out,
          std::to_string(n_in) + " inputs and " + std::to_string(n_out) + " outputs are needed");
}

inline void require_rank(const orr_tensor& t, int rank, const char* name) {
  require(t.rank == rank, std::string(name) + " must have rank " + std::to_string(rank));
}

inline void require_shape(const orr_tensor& t, std::initializer_list<int64_t> dims,
                          const char* name) {
  bool ok = t.rank == int32_t(dims.size());
  int i = 0;
  for (int64_t d : dims) ok = ok && t.dims[i++] == d;
  require(ok, std::string("the shape of ") + name + " does not fit the other tensors");
}

inline void require_dtype(const orr_tensor& t, int32_t dtype, const char* name) {
  require(t.dtype == dtype,
          std::string("the dtype of ") + name + " does not fit the other tensors");
}

inline void require_vector(const orr_tensor& t, int32_t dtype, int64_t n, const char* name) {
  require_dtype(t, dtype, name);
  require_shape(t, {n}, name);
}

inline void require_real(const orr_tensor& t, const char* name) {
  require(is_real(t.dtype), std::string(name) + " must be f32, f64, bf16 or f16");
}

inline void require_computed(const orr_tensor& t, const char* name) {
  require(!is_eight_bits(t.dtype), std::string(name) + " must not be of eight bits");
}

inline void require_index(const orr_tensor& t, const char* name) {
  require(is_index(t.dtype), std::string(name) + " must be i32 or i64");
}

inline void require_scalar(const orr_tensor& t, const char* name) {
  require(elements(t) == 1 && t.dtype == ORR_I64, std::string(name) + " must be an i64 scalar");
}

// Whether sums of elements of one dtype may be stored as the other (ops.h, ANOTHER DTYPE); those of
// integers also as what they are added in.
inline bool sums_into(int32_t from, int32_t to) {
  const bool from_short = from == ORR_BF16 || from == ORR_F16;
  const bool to_short = to == ORR_BF16 || to == ORR_F16;
  if (is_eight_bits(from)) return false;
  return from == to || (from_short && to == ORR_F32) || (from == ORR_F32 && to_short) ||
         (!is_real(from) && to == ORR_I64);
}

// A tensor that holds sums of elements of dtype `summed`.
inline void require_sum(const orr_tensor& t, int32_t summed, const char* name) {
  require(sums_into(summed, t.dtype),
          std::string("sums of the first input's dtype cannot be stored in that of ") + name);
}

// The factors and the result of a matmul (ops.h, ANOTHER DTYPE and EIGHT BITS).
inline void require_product(const orr_tensor& a, const orr_tensor& b, const orr_tensor& y) {
  if (!is_eight_bits(a.dtype)) {
    require_real(a, "a");
    require_dtype(b, a.dtype, "b");
    return require_sum(y, a.dtype, "y");
  }
  require(is_eight_bits(b.dtype), "b must be of eight bits, as a is");
  require(y.dtype == ORR_F32 || y.dtype == ORR_BF16 || y.dtype == ORR_F16,
          "the product of eight-bit factors is f32, bf16 or f16");
}

// The leaves of an op that sums over the batch (ops.h, LEAVES).
struct Leaves {
  explicit Leaves(const orr_op& op)
      : lo(attr_int(op, "leaf_lo", 0)),
        n(attr_int(op, "leaf_n", 1)),
        total(attr_int(op, "leaf_total", 1)) {}

  int64_t nodes() const { return orr_tree_nodes(lo, lo + n, total); }

  int64_t lo, n, total;
};

// Throws unless the leaves are well formed and cut a summed dim of `length` evenly. They are fewer
// than 2^30, so that a call completes 60 nodes at most.
inline void require_leaves(const orr_op& op, int64_t length) {
  const Leaves leaves(op);
  require(leaves.lo >= 0 && leaves.n >= 1 && leaves.lo + leaves.n <= leaves.total,
          "leaf_lo, leaf_n do not lie in [0, leaf_total)");
  require(leaves.total < int64_t{1} << 30, "2^30 leaves, or more");
  require(length % leaves.n == 0, "leaf_n does not divide the summed dim");
}

// Throws unless an output of an op with leaves ends in `dims`, and the dims before them multiply to
// the number of nodes, or to 1 if the op is declared as without leaves.
inline void require_nodes(const orr_op& op, const orr_tensor& t,
                          std::initializer_list<int64_t> dims, const char* name) {
  int at = t.rank - int(dims.size());
  bool ok = at >= 0;
  int64_t lead = 1;
  for (int i = 0; i < at; ++i) lead *= t.dims[i];
  for (int64_t d : dims) ok = ok && t.dims[at++] == d;
  ok = ok && (lead == 1 || lead == Leaves(op).nodes());
  require(ok, std::string("the shape of ") + name + " is not [nodes, ..] of the other tensors");
}

}  // namespace orr
