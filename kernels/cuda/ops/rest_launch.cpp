// SPDX-License-Identifier: Apache-2.0
#include "rest_launch.h"

#include "../op.h"
#include "pointer.h"

namespace orr_cuda {
namespace {

constexpr int64_t few = 16;  // terms of a sum that one thread adds

// The strides of an operand, whose rows or, if `turned`, columns lie side by side.
RestMatrix strides_of(const Matrix& x) {
  return x.turned ? RestMatrix{nullptr, 1, x.leading} : RestMatrix{nullptr, x.leading, 1};
}

}  // namespace

RestLaunch::RestLaunch(const MatmulShape& shape, int64_t depth)
    : function_(find_function(std::string("rest_") + dtype_name(shape.dtype))),
      args_{
          strides_of(*shape.a), strides_of(*shape.b), strides_of(*shape.y), shape.m, shape.n, depth,
          depth > few ? 32 : 1},
      grid_{unsigned((shape.m * shape.n * args_.team + kRestThreads - 1) / kRestThreads)} {}

void RestLaunch::launch(CUstream stream, CUdeviceptr a, CUdeviceptr b, CUdeviceptr y) const {
  RestArgs args = args_;
  args.a.at = pointer(a), args.b.at = pointer(b), args.y.at = pointer(y);
  enqueue(stream, function_, grid_, {kRestThreads}, 0, args);
}

}  // namespace orr_cuda
