// SPDX-License-Identifier: Apache-2.0
#include "rows_of_k.h"

#include "ops/column_sums.h"

namespace orr_cuda {
namespace {

uint64_t copy_bytes(int64_t rows, int64_t depth) { return round_up(uint64_t(rows * depth), 256); }

// A copy of [rows, depth] bytes that lie with these strides, row after row.
std::unique_ptr<Prepared> prepare_copy(int64_t rows, int64_t depth, int64_t row_step,
                                       int64_t step) {
  orr_tensor to{}, from{};
  to.dtype = from.dtype = ORR_U8, to.rank = from.rank = 2;
  to.dims[0] = from.dims[0] = rows, to.dims[1] = from.dims[1] = depth;
  to.strides[0] = depth, to.strides[1] = 1;
  from.strides[0] = row_step, from.strides[1] = step;
  Terms terms(to);
  const int32_t x = terms.input(from);
  return pointwise_family.prepare(terms.op({x}));
}

}  // namespace

uint64_t RowsOfK::bytes(const MatmulShape& shape) {
  if (!is_eight_bits(shape.dtype)) return 0;
  return copy_bytes(shape.m, shape.k) + copy_bytes(shape.n, shape.k);
}

RowsOfK::RowsOfK(const orr_op& op, const MatmulShape& shape)
    : copies_a_(shape.copies_a),
      copies_b_(shape.copies_b),
      b_at_(copy_bytes(shape.m, shape.k)),
      a_(prepare_copy(shape.m, shape.k, op.in[0].strides[1], op.in[0].strides[2])),
      b_(prepare_copy(shape.n, shape.k, op.in[1].strides[2], op.in[1].strides[1])) {}

ProductPlaces RowsOfK::before(CUstream stream, ProductPlaces at, CUdeviceptr copies) const {
  const auto read = [&](CUdeviceptr& x, bool copied, Prepared& copy, CUdeviceptr to) {
    if (!copied && x % 16 == 0) return;
    copy.launch(stream, {&x, &to, 0});
    x = to;
  };
  read(at.a, copies_a_, *a_, copies), read(at.b, copies_b_, *b_, copies + b_at_);
  return at;
}

}  // namespace orr_cuda
