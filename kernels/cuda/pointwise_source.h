// SPDX-License-Identifier: Apache-2.0
//
// The kernel of a pointwise op as source text. Two functions of the same signature (struct Args of
// addresses, inputs first; the number of elements): pointwise_vector takes `vector` elements per
// thread and needs every address aligned to them, pointwise_single takes one.
#pragma once

#include <orrery/kernel.h>

#include <string>

#include "pointwise_layout.h"

namespace orr_cuda {

constexpr unsigned pointwise_block = 256;  // threads

// Throws Unsupported where the op does not follow ops.h. Pure.
std::string pointwise_source(const orr_op& op, const Walk& walk);

// pointwise_many, which does what several launches of the wider of them would: each is a row of
// 64-bit words (the addresses, the number of elements, the number of its first block) in a table on
// the device. REQUIRES: the walk is flat.
std::string pointwise_table_source(const orr_op& op, const Walk& walk);

}  // namespace orr_cuda
