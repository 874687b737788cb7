// SPDX-License-Identifier: Apache-2.0
//
// The op families of the plugin: each has a declaration here and an entry in the list.
#include "op.h"

// clang-format off
#define ORR_FAMILIES(X)                                                                           \
  X(argmax) X(attention) X(attention_grad) X(categorical) X(cross_entropy) X(cross_entropy_grad)  \
  X(fold) X(gather) X(iota) X(layernorm) X(layernorm_grad) X(matmul) X(matmul_pointwise)          \
  X(norm_grad) X(norm_param_grad) X(pointwise) X(pointwise_next) X(reduce) X(reduce_each)         \
  X(rmsnorm) X(rmsnorm_grad) X(scatter_add) X(slice_at) X(softmax) X(softmax_grad) X(topk)        \
  X(update_slice)
// clang-format on

namespace orr_cuda {

#define ORR_DECLARE(kind) extern const Family kind##_family;
ORR_FAMILIES(ORR_DECLARE)

#define ORR_ADDRESS(kind) &kind##_family,
const Family* const families[] = {ORR_FAMILIES(ORR_ADDRESS) nullptr};

}  // namespace orr_cuda
