// SPDX-License-Identifier: Apache-2.0
//
// What the table of ops asks of gather_matmul and scatter_matmul.
#pragma once

#include <orrery/kernel.h>

namespace orr_cpu {

// Bytes of a part of the scratch, so that the next one begins on a cache line.
constexpr int64_t grouped_bytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

void gather_matmul_supports(const orr_op& op, orr_support& out);
uint64_t gather_matmul_workspace(const orr_op& op);
void scatter_matmul_supports(const orr_op& op, orr_support& out);
uint64_t scatter_matmul_workspace(const orr_op& op);

}  // namespace orr_cpu
