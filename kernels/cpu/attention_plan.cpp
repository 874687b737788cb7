// SPDX-License-Identifier: Apache-2.0
//
// See attention_plan.h. The sizes follow the Scratch structs of the two kernels, for the widest
// instruction set.
#include "attention_plan.h"

#include <orrery/sdk/attention.hpp>

#include "kernel.h"

namespace orr_cpu {
namespace {

constexpr int64_t kRow = 272, kKeyBlock = 128, kPanel = 32;

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

void check(const orr_op& op, int heads_in, int heads_out, orr_support& out) {
  int32_t dtype = op.in[0].dtype;
  const int base = heads_out == 1 ? orr::attention_operands : orr::attention_grad_operands;
  const bool biased = orr::attention_has_bias(op, base);
  const int operands = base + biased;
  if (!orr::AttentionDropout::fits(op, operands)) return refuse(out, orr::attention_inputs);
  if (dtype != ORR_F32 && dtype != ORR_BF16 && dtype != ORR_F16)
    return refuse(out, "only f32, bf16 and f16");
  if (op.in[0].dims[3] > kAttentionDepth) return refuse(out, "heads of more than 256 elements");
  for (int i = 0; i < heads_in; ++i)
    if (op.in[i].strides[3] != 1 || op.in[i].dtype != dtype)
      return refuse(out, "only inputs of one type whose last stride is 1");
  if (biased && (op.in[base].strides[3] != 1 || op.in[base].dtype != dtype))
    return refuse(out, "only a bias of the other inputs' type whose last stride is 1");
  accept(out, "attention/k128");
  out.strided_in = (1u << operands) - 1;
  out.strided_out = (1u << heads_out) - 1;
  out.takes = ORR_TAKES_GROUPED_HEADS | ORR_TAKES_WINDOW;
}

uint64_t bytes(int64_t slot) { return uint64_t(threads() * slot) * 4 + 64; }

}  // namespace

int64_t attention_span(int64_t queries) {
  return queries < kAttentionSpan ? round_up(queries, kPanel) : int64_t(kAttentionSpan);
}

int64_t attention_slot(int64_t, int64_t keys, int64_t depth) {
  return round_up(2 * keys * kRow + 2 * depth * kPanel + 2 * kKeyBlock * kPanel, 16) + 16;
}

int64_t attention_grad_slot(int64_t queries, int64_t keys, int64_t depth) {
  const int64_t wide = round_up(depth, 16), span = attention_span(queries);
  return round_up(2 * keys * kRow + 2 * (span + keys) * wide + 2 * span + 2 * depth * span +
                      2 * kKeyBlock * kRow + depth * kRow + kKeyBlock * kPanel + depth * kPanel,
                  16) +
         16;
}

void attention_supports(const orr_op& op, orr_support& out) { check(op, 3, 1, out); }
void attention_grad_supports(const orr_op& op, orr_support& out) { check(op, 5, 3, out); }

uint64_t attention_workspace(const orr_op& op) {
  const orr_tensor &q = op.in[0], &k = op.in[1];
  return bytes(attention_slot(q.dims[2], k.dims[2], q.dims[3]));
}

uint64_t attention_grad_workspace(const orr_op& op) {
  const orr_tensor &q = op.in[1], &k = op.in[2];
  const int64_t together = k.dims[0] * k.dims[1] % threads();  // heads that threads share
  return bytes(attention_grad_slot(q.dims[2], k.dims[2], q.dims[3])) +
         uint64_t(together * k.dims[2] * kRow) * 4;
}

}  // namespace orr_cpu
