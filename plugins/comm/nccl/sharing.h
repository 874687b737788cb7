// SPDX-License-Identifier: Apache-2.0
//
// ORRERY_NCCL_SHARE_GPU=1, for tests alone: the ranks of one host may have the same GPU.
#pragma once

#include <orrery/comm.h>

namespace nccl {

// Whether GPUs may be shared. If so, tells NCCL through its variables that every rank is a host of
// its own, where it takes one rank per GPU, reached over loopback; variables that are set stay.
// REQUIRES: NCCL has not been asked for anything yet, which is when it reads them. Throws
// orr::Error.
bool share_gpus(const orr_comm_boot& boot);

}  // namespace nccl
