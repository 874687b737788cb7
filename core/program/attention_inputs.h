// SPDX-License-Identifier: Apache-2.0
//
// Where attention and attention_grad have their inputs: q, k, v, or do, q, k, v, o, lse; then the
// bias, if there is one; with dropout, seed, step and base.
#pragma once

#include "program/program.h"

namespace orrery {

inline int64_t heads_of(const Attrs& attrs) { return attr_int(attrs, "heads", 1); }
// Heads of keys and values, each of which as many heads of queries read.
inline int64_t kv_heads_of(const Attrs& attrs) {
  return attr_int(attrs, "kv_heads", heads_of(attrs));
}

inline size_t query_of(const std::string& kind) { return kind == "attention" ? 0 : 1; }

// The inputs before the bias and what dropout needs.
inline size_t operands_of(const std::string& kind) { return kind == "attention" ? 3 : 6; }

// Dropout takes three inputs, so their number says whether there is a bias.
inline bool has_bias(const std::string& kind, size_t inputs) {
  return (inputs - operands_of(kind)) % 3 == 1;
}

inline ValueId bias_of(const Op& op) {
  return has_bias(op.kind, op.in.size()) ? op.in[operands_of(op.kind)] : kNone;
}

// Gives the op this bias, in place of the one that it may have.
inline void set_bias(Op& op, ValueId bias) {
  const auto at = op.in.begin() + static_cast<long>(operands_of(op.kind));
  if (has_bias(op.kind, op.in.size()))
    *at = bias;
  else
    op.in.insert(at, bias);
}

}  // namespace orrery
