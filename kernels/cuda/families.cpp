// SPDX-License-Identifier: Apache-2.0
//
// The ops of the plugin, by file.
#include "op.h"

namespace orr_cuda {

extern const Family pointwise_family;

const Family* const families[] = {&pointwise_family, nullptr};

}  // namespace orr_cuda
