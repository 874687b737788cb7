// SPDX-License-Identifier: Apache-2.0
//
// The ops of the plugin, by file.
#include "op.h"

namespace orr_cuda {

const Family* const families[] = {nullptr};

}  // namespace orr_cuda
