// SPDX-License-Identifier: Apache-2.0
//
// checkpoint/1 of the format "dcp", directories of torch.distributed.checkpoint.
#pragma once

#include <orrery/checkpoint.h>

namespace data {

extern const orr_checkpoint_api dcp_table;

}  // namespace data
