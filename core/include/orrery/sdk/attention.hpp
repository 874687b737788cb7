// SPDX-License-Identifier: Apache-2.0
//
// What kernels of attention and attention_grad (orrery/ops.h) have in common: how many inputs they
// have, which keys a query sees by its place, and which weights dropout leaves out.
#pragma once

#include <orrery/kernel.h>
#include <orrery/ops.h>

#include <algorithm>
#include <cstdint>
#include <orrery/sdk/plugin.hpp>

namespace orr {

// Inputs without bias and dropout: q, k, v; of the gradient do, q, k, v, o, lse.
enum { attention_operands = 3, attention_grad_operands = 6 };

// Whether the op has a bias, behind so many inputs. Dropout's come after it, and are three.
inline bool attention_has_bias(const orr_op& op, int operands) {
  return op.n_in > operands && (op.n_in - operands) % 3 == 1;
}

// The keys [begin, end) that a query sees under a causal mask and a window.
struct AttentionSight {
  AttentionSight(const orr_op& op, int64_t all_queries, int64_t all_keys)
      : queries(all_queries),
        keys(all_keys),
        window(attr_int(op, "window", 0)),
        causal(attr_int(op, "causal", 0) != 0) {}

  int64_t begin(int64_t query) const { return window ? inside(place(query) - window + 1) : 0; }
  int64_t end(int64_t query) const {
    return causal ? inside(place(query) + 1) : window ? inside(place(query) + window) : keys;
  }

  int64_t queries, keys, window;
  bool causal;

 private:
  int64_t place(int64_t query) const { return query + keys - queries; }
  int64_t inside(int64_t key) const { return std::clamp<int64_t>(key, 0, keys); }
};

// Everywhere `operands` says how many inputs the op has before seed, step and base: 3, the gradient
// 6; one more with a bias.
class AttentionDropout {
 public:
  // Whether the op has only its operands, or three more inputs that are i64 scalars.
  static bool fits(const orr_op& op, int operands) {
    if (op.n_in != operands && op.n_in != operands + 3) return false;
    for (int i = operands; i < op.n_in; ++i)
      if (op.in[i].dtype != ORR_I64 || op.in[i].rank != 0) return false;
    return true;
  }

  // REQUIRES: fits(op, operands).
  AttentionDropout(const orr_op& op, int operands)
      : on_(op.n_in > operands),
        rate_(on_ ? static_cast<float>(attr_real(op, "dropout", 0.0)) : 0.0f),
        rng_id_(static_cast<uint32_t>(attr_int(op, "rng_id", 0))),
        heads_(
            attr_int(op, "head_total", op.in[operands < attention_grad_operands ? 0 : 1].dims[1])),
        head_lo_(attr_int(op, "head_lo", 0)) {}

  bool on() const { return on_; }
  float rate() const { return rate_; }
  uint32_t rng_id() const { return rng_id_; }
  int64_t heads() const { return heads_; }  // of a sample, including those of other ranks
  int64_t head_lo() const { return head_lo_; }
  // The factor of the weights that are kept; 1 without dropout.
  double scale() const { return 1.0 / (1.0 - double{rate_}); }
  // In the numbering of weights: the index of the row of query 0 of this head.
  int64_t row(int64_t batch, int64_t head, int64_t queries) const {
    return (batch * heads_ + head_lo_ + head) * queries;
  }

 private:
  bool on_;
  float rate_;
  uint32_t rng_id_;
  int64_t heads_, head_lo_;
};

constexpr char attention_inputs[] =
    "the operands and, with dropout, the i64 scalars seed, step and base are needed";

}  // namespace orr
