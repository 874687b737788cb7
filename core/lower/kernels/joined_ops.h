// SPDX-License-Identifier: Apache-2.0
//
// Ops that stand for several: whether kernels take them, and how a matmul_pointwise (ops.h) is
// replaced by the two that it stands for.
#pragma once

#include <vector>

#include "lower/kernel_choice.h"
#include "partition/localize.h"
#include "program/op.h"

namespace orrery {

// Larger expressions do not fit the registers of a kernel's tile.
constexpr size_t kMostInputs = 24, kMostInstrs = 96;

// By value: whether others than ops read it, such as totals, updates and results.
std::vector<char> read_from_outside(const LocalProgram& local);

Op product_of(Op both);
int32_t product_dtype(const Op& both);
// Whether a register of the expression is the product itself.
bool is_product(const Op& both, int32_t reg);

// What factors of eight bits are cast to where a product with such a result reads wider ones: bf16,
// or f32, from which alone a sum is stored as f16.
int32_t wider_factors(int32_t result);
// Whether a kernel has a higher score for the product with wider factors, or none takes it as it
// is.
bool is_better_wider(const KernelChoice& kernels, const Launch& product);

std::vector<orr_tensor> abi_tensors(const std::vector<Strided>& layouts);
// The score of the best kernel for the op if that takes these layouts without copies, else 0.
// `launch` becomes what it was asked.
int32_t score_as_it_is(const KernelChoice& kernels, const Op& op, const std::vector<Strided>& in,
                       const std::vector<Strided>& out, Launch& launch);
// Whether a kernel takes the joined op with these layouts, and none has a higher score for the
// product alone.
bool taken_as_one(const KernelChoice& kernels, const Op& both, const std::vector<Strided>& in,
                  const std::vector<Strided>& out);
// The highest score for the op, all of whose tensors are contiguous.
int32_t score_of(const KernelChoice& kernels, const Program& p, const Op& op);
// Whether a kernel takes the joined op, all of whose tensors are contiguous, and none has a higher
// score for one of those that it stands for.
bool taken_as_joined(const KernelChoice& kernels, const Program& p, const Op& joined,
                     const std::vector<const Op*>& ops);
// Removes the ops that are `gone` (by op), as they became part of others.
void remove_ops(Program& p, const std::vector<char>& gone);

}  // namespace orrery
