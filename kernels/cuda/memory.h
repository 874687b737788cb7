// SPDX-License-Identifier: Apache-2.0
//
// The memory slots of device/1: what the plan takes once, and copies between tiers.
#pragma once

#include <orrery/device.h>

namespace orr_cuda {

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out);
void free_memory(void*, orr_memory* memory);
orr_status* copy(void*, orr_stream* stream, const orr_buffer* to, const orr_buffer* from);

}  // namespace orr_cuda
