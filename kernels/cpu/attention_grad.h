// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of attention_grad, block by block: the weights are computed again from lse. Which
// thread computes a block's rows decides about no bits: every sum is taken in the order of keys, of
// spans of queries and of heads.
#pragma once

#include "attention.h"
#include "attention_dropout.h"
#include "attention_plan.h"

namespace orr_cpu::ORR_ISA {
namespace {

constexpr int64_t kSpan = kAttentionSpan;  // queries that one product over queries takes at a time
constexpr int64_t kPartKeys = 32 / kMicroRows * kMicroRows;  // that a thread takes of a block

struct GradScratch {
  float *keys, *values;          // rows, kRowStride apart
  float *query, *grad;           // q and do: [span][padded depth]
  float *key_grad, *value_grad;  // [keys][padded depth]
  float *delta, *logs;           // [span]: sum of do*o, lse
  float *query_t, *grad_t;       // panels [depth][kQueries] of the span
  float* query_grad;             // [depth][kRowStride]
  float *weight, *slope;         // [kKeys][kRowStride]: softmax, and its gradient
  float* bias;                   // [kKeys][kQueries]
  float* output;                 // [depth][kQueries]

  GradScratch(const AttentionShape& s, float* p) : keys(p) {
    const int64_t wide = s.padded_depth(), span = attention_span(s.queries);
    values = keys + s.keys * kRowStride;
    query = values + s.keys * kRowStride;
    grad = query + span * wide;
    key_grad = grad + span * wide;
    value_grad = key_grad + s.keys * wide;
    delta = value_grad + s.keys * wide;
    logs = delta + span;
    query_t = logs + span;
    grad_t = query_t + s.depth * span;
    query_grad = grad_t + s.depth * span;
    weight = query_grad + s.depth * kRowStride;
    slope = weight + kKeys * kRowStride;
    bias = slope + kKeys * kRowStride;
    output = bias + kKeys * kQueries;
  }
};

// The queries [t, t + count) of a head; pointers are to the head's query 0.
template <class S>
struct GradSpan {
  int64_t t, count;
  const S *query, *grad, *output, *bias;
  const float* lse;
  S *query_grad, *bias_grad;  // the latter is [queries][keys], or null
  int64_t row;                // of dropout's numbers
};

// Keys [first, first + n), and for each panel of the span how many of them it computes.
struct GradBlock {
  int64_t first, n;
  int64_t keys[kSpan / 16];
  bool hidden[kSpan / 16];
};

template <class S>
struct GradBlocks {
  using Span = GradSpan<S>;
  using Scratch = GradScratch;

  [[gnu::flatten]] explicit GradBlocks(const orr_op& op)
      : shape(op.in[1], op.in[2], op, orr::attention_grad_operands),
        go(op.in[0]),
        q(op.in[1]),
        k(op.in[2]),
        v(op.in[3]),
        o(op.in[4]),
        lse(op.in[5]),
        bias(op.in[shape.biased ? shape.bias : 0]),
        gq(op.out[0]),
        gk(op.out[1]),
        gv(op.out[2]),
        bias_grad(op.n_out == 4),
        dropout(op, shape.dropout()) {}

  Span span_of(int64_t b, int64_t h, int64_t t, const orr_buffer* in, const orr_buffer* out) const {
    return {
        t,
        smaller(kSpan, shape.queries - t),
        host<S>(in[1]) + q.at(b, h),
        host<S>(in[0]) + go.at(b, h),
        host<S>(in[4]) + o.at(b, h),
        shape.biased ? host<S>(in[shape.bias]) + bias.at(b, h) : nullptr,
        host<float>(in[5]) + lse.at(b, h),
        host<S>(out[0]) + gq.at(b, h),
        bias_grad ? host<S>(out[3]) + (b * shape.heads + h) * shape.queries * shape.keys : nullptr,
        dropout.row(b, h, shape.queries)};
  }

  // Keys [first, end) of a head, whose gradients begin with 0.
  void begin_keys(int64_t b, int64_t g, int64_t first, int64_t end, const Scratch& s,
                  const orr_buffer* in) const {
    const int64_t wide = shape.padded_depth(), depth = shape.depth, n = end - first;
    copy_rows(host<S>(in[2]) + k.at(b, g) + first * k.row, k.row, n, depth,
              s.keys + first * kRowStride, kRowStride, depth);
    copy_rows(host<S>(in[3]) + v.at(b, g) + first * v.row, v.row, n, depth,
              s.values + first * kRowStride, kRowStride, depth);
    for (int64_t i = first * wide; i < end * wide; i += 16)
      store(s.key_grad + i, splat(0.0f)), store(s.value_grad + i, splat(0.0f));
  }
  void end_keys(int64_t b, int64_t g, int64_t first, int64_t end, const Scratch& s,
                const orr_buffer* out) const {
    write_rows(s.key_grad, shape.scale, first, end, host<S>(out[1]) + gk.at(b, g), gk.row);
    write_rows(s.value_grad, 1.0f, first, end, host<S>(out[2]) + gv.at(b, g), gv.row);
  }

  // The panel at query i of the span: its rows, and delta.
  void begin_panel(const Span& x, int64_t i, const Scratch& s, float* output) const {
    const int64_t wide = shape.padded_depth(), depth = shape.depth, t = x.t + i;
    const int64_t n = smaller(kQueries, x.count - i);
    copy_rows(x.query + t * q.row, q.row, n, depth, s.query + i * wide, wide, wide);
    copy_rows(x.grad + t * go.row, go.row, n, depth, s.grad + i * wide, wide, wide);
    for (int64_t j = 0; j < n; ++j) {
      const float log = x.lse[(t + j) * lse.row];
      // -inf where no key is seen: scores less 0 are -inf.
      s.logs[i + j] = log == -HUGE_VALF ? 0.0f : log;
    }
    pack_panels<kQueries>(s.query + i * wide, wide, 1, n, depth, s.query_t + i * depth, 0);
    pack_panels<kQueries>(s.grad + i * wide, wide, 1, n, depth, s.grad_t + i * depth, 0);
    pack_panels<kQueries>(x.output + t * o.row, o.row, 1, n, depth, output, 0);
    for (int64_t j = 0; j < n; j += 16)
      dot_lanes(output + j, s.grad_t + i * depth + j, s.delta + i + j);
    if (x.bias_grad)  // of keys not seen
      for (int64_t j = t * shape.keys; j < (t + n) * shape.keys; ++j)
        store_one(x.bias_grad + j, 0.0f);
  }

  // Blocks begin at multiples of kKeys.
  int64_t begin(const Span& x) const { return shape.first(x.t) / kKeys * kKeys; }
  int64_t end(const Span& x) const { return shape.end(x.t + x.count - 1); }

  GradBlock look(const Span& x, int64_t first) const {
    GradBlock b{first, smaller(kKeys, end(x) - first), {}, {}};
    for (int64_t i = 0, p = 0; i < x.count; i += kQueries, ++p) {
      const int64_t queries = smaller(kQueries, x.count - i), t = x.t + i;
      const int64_t seen = larger(0, shape.end(t + queries - 1) - first);
      b.keys[p] = smaller(b.n, ceil_div(seen, kMicroRows) * kMicroRows);
      b.hidden[p] = shape.first(t) >= first + b.n ||
                    (x.bias && hides(x.bias + t * bias.row + first, bias.row, queries, b.keys[p]));
    }
    return b;
  }

  // Weights and slopes of the block's keys [lo, hi) under the panel at query i; those of `lo` lie
  // at s.weight and s.slope. REQUIRES: lo is a multiple of kMicroRows.
  void weigh(const Span& x, int64_t i, const GradBlock& b, int64_t lo, int64_t hi, const Scratch& s,
             const Dropout& drops) const {
    const int queries = int(smaller(kQueries, x.count - i));
    const int64_t keys = smaller(hi, b.keys[i / kQueries]) - lo, key = b.first + lo;
    if (keys <= 0) return;
    if (b.hidden[i / kQueries]) return clear_panel(i, keys, s);
    panel(x, i, queries, key, keys, s, drops);
    if (!x.bias_grad) return;
    alignas(64) float ones[kQueries];
    for (float& one : ones) one = 1.0f;
    write_transposed(s.slope + i, kRowStride, keys, queries, ones,
                     x.bias_grad + (x.t + i) * shape.keys + key, shape.keys);
  }

  // Adds the block's part to the gradient of the panel's queries; `begun`: not the first part.
  void add_to_queries(const Span& x, int64_t i, const GradBlock& b, bool begun, const Scratch& s,
                      const float* slope) const {
    const int64_t p = i / kQueries, keys = b.hidden[p] ? 0 : b.keys[p];
    const int vectors = int(smaller(kQueries, x.count - i) + 15) / 16;
    for (int64_t d = 0; d < shape.depth && (keys > 0 || !begun); d += kMicroRows)
      multiply_micro<float>(
          int(smaller(kMicroRows, shape.depth - d)), vectors,
          {keys, s.keys + b.first * kRowStride + d, kRowStride, slope + i, kRowStride,
           s.query_grad + d * kRowStride + i, kRowStride, begun, nullptr});
  }

  // Adds what the span gives to the gradients of the block's keys [lo, hi), as `weigh` left them.
  void add_to_keys(const Span& x, const GradBlock& b, int64_t lo, int64_t hi,
                   const Scratch& s) const {
    int64_t some = x.count, all = 0;  // panels outside of the queries [some, all) see nothing
    for (int64_t i = 0; i < x.count; i += kQueries)
      if (!b.hidden[i / kQueries]) some = smaller(some, i), all = smaller(i + kQueries, x.count);
    for (int64_t i = lo; i < hi; i += kMicroRows) {
      const int rows = int(smaller(kMicroRows, hi - i));
      int64_t from = 0;  // the first panel that sees one of these keys
      while (shape.end(x.t + smaller(from + kQueries, x.count) - 1) <= b.first + i)
        from += kQueries;
      from = larger(from, some);
      if (from >= all) continue;
      const int64_t at = (i - lo) * kRowStride + from;
      sum_over_queries(s.weight + at, rows, s.grad, from, all - from, s.value_grad, b.first + i);
      sum_over_queries(s.slope + at, rows, s.query, from, all - from, s.key_grad, b.first + i);
    }
  }

  // Writes the gradient of the panel's queries; `seen`: they see a key.
  void end_panel(const Span& x, int64_t i, bool seen, const Scratch& s) const {
    const int64_t depth = shape.depth, n = smaller(kQueries, x.count - i);
    S* const to = x.query_grad + (x.t + i) * gq.row;
    alignas(64) float factor[kQueries];
    for (float& f : factor) f = shape.scale;
    if (seen)
      return write_transposed(s.query_grad + i, kRowStride, depth, int(n), factor, to, gq.row);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t d = 0; d < depth; ++d) store_one(to + j * gq.row + d, 0.0f);
  }

  // The sum over the depth in the order of the products with v, so that where o is v they cancel.
  void dot_lanes(const float* x, const float* y, float* to) const {
    v16f sum = splat(0.0f);
    for (int64_t d = 0; d < shape.depth; ++d)
      sum = fma(load(x + d * kQueries), load(y + d * kQueries), sum);
    store(to, sum);
  }

  // The weights and slopes of a panel of queries that sees none of these keys.
  void clear_panel(int64_t at, int64_t keys, const Scratch& s) const {
    for (int64_t i = 0; i < keys; ++i)
      for (int64_t j = at; j < at + kQueries; j += 16)
        store(s.weight + i * kRowStride + j, splat(0.0f)),
            store(s.slope + i * kRowStride + j, splat(0.0f));
  }

  // Softmax weights and their gradient for one panel of queries, at column `at` of the span.
  void panel(const Span& x, int64_t at, int queries, int64_t first, int64_t keys, const Scratch& s,
             const Dropout& drops) const {
    const int vectors = (queries + 15) / 16;
    const int64_t t = x.t + at;
    for (int64_t i = 0; i < keys; i += kMicroRows) {
      int rows = int(smaller(kMicroRows, keys - i));
      int64_t row = (first + i) * kRowStride, to = i * kRowStride + at, depth = shape.depth;
      multiply_micro<float, Along::k, true>(
          rows, vectors,
          {depth, s.keys + row, kRowStride, s.query_t + at * depth, kQueries, s.weight + to,
           kRowStride, false, nullptr});
      multiply_micro<float, Along::k, true>(
          rows, vectors,
          {depth, s.values + row, kRowStride, s.grad_t + at * depth, kQueries, s.slope + to,
           kRowStride, false, nullptr});
    }
    for (int j = 0; j < vectors && dropout.on(); ++j)
      leave_out(Draws(drops, x.row + t + 16 * j, shape.keys, first), keys, s.slope + at + 16 * j);
    if (x.bias)
      add_bias(x.bias + t * bias.row + first, bias.row, queries, keys, shape.scale, s.bias,
               s.weight + at, kRowStride);
    for (int j = 0; j < vectors; ++j) {
      int64_t t16 = t + 16 * j, to = at + 16 * j;
      v16f logs = load(s.logs + at + 16 * j), delta = load(s.delta + at + 16 * j);
      v16f scale = splat(shape.last_scale());
      const int64_t some = shape.first(t16 + 15) - first, whole = shape.end(t16) - first;
      for (int64_t i = 0; i < keys; ++i, to += kRowStride) {
        v16f w = exp_negative(fma(load(s.weight + to), scale, -logs));
        if (i < some || i >= whole) w = select(sees(shape, first + i, t16), w, splat(0.0f));
        store(s.weight + to, w);
        const v16f slope = w * (load(s.slope + to) - delta);
        // What a bias gets for a key that is not seen is +0, as where no block was computed.
        store(s.slope + to, x.bias_grad ? slope + splat(0.0f) : slope);
      }
    }
    for (int j = 0; j < vectors && dropout.on(); ++j)
      leave_out(Draws(drops, x.row + t + 16 * j, shape.keys, first), keys, s.weight + at + 16 * j);
  }

  // From products with v, and from the weights that values are multiplied by.
  void leave_out(Draws draws, int64_t keys, float* x) const {
    const v16f scale = splat(float(dropout.scale()));
    for (int64_t i = 0; i < keys; ++i, x += kRowStride)
      store(x, select(draws.next(), load(x) * scale, splat(0.0f)));
  }

  // to[key][d] += sum over the span's queries from i on of a[key][query] * rows[query][d].
  void sum_over_queries(const float* a, int keys, const float* rows, int64_t i, int64_t count,
                        float* to, int64_t key) const {
    int64_t wide = shape.padded_depth();
    for (int64_t d = 0; d < wide; d += kQueries)
      multiply_micro<float, Along::k, true>(keys, int(smaller(kMicroVectors, (wide - d) / 16)),
                                            {count, a, kRowStride, rows + i * wide + d, wide,
                                             to + key * wide + d, wide, true, nullptr});
  }

  void write_rows(const float* from, float factor, int64_t first, int64_t end, S* to,
                  int64_t step) const {
    int64_t wide = shape.padded_depth();
    for (int64_t i = first; i < end; ++i)
      for (int64_t d = 0; d < wide; d += 16) {
        v16f x = load(from + i * wide + d) * splat(factor);
        if (d + 16 <= shape.depth)
          store(to + i * step + d, x, Full{});
        else
          store(to + i * step + d, x, int(shape.depth - d));
      }
  }

  AttentionShape shape;
  Heads go, q, k, v, o, lse, bias, gq, gk, gv;
  bool bias_grad;
  orr::AttentionDropout dropout;
};

}  // namespace
}  // namespace orr_cpu::ORR_ISA
