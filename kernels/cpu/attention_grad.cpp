// SPDX-License-Identifier: Apache-2.0
//
// attention_grad, one head of keys and values per task, with the heads of queries that read it, one
// after another: the weights are computed again, block by block, from lse, and every gradient is
// summed by that task in a fixed order.
#include "attention.h"
#include "attention_dropout.h"
#include "attention_plan.h"

namespace orr_cpu::ORR_ISA {
namespace {

constexpr int64_t kSpan = 256;  // queries that one product over queries takes at a time

template <class S>
struct AttentionGrad : Kernel {
  explicit AttentionGrad(const orr_op& op)
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
        dropout(op, shape.dropout()),
        workers(threads()) {}

  struct Scratch {
    float *keys, *values;          // rows, kRowStride apart
    float *query, *grad;           // q and do: [queries][padded depth]
    float *key_grad, *value_grad;  // [keys][padded depth]
    float *delta, *logs;           // [queries]: sum of do*o, lse
    float *query_t, *grad_t;       // panels [depth][kQueries] of kSpan queries
    float *weight, *slope;         // [kKeys][kRowStride]: softmax, and its gradient
    float* query_grad;             // [depth][kRowStride]
    float* bias;                   // [kKeys][kQueries]

    Scratch(const AttentionShape& s, float* p) : keys(p) {
      int64_t wide = s.padded_depth(), span = (s.queries + 31) & ~int64_t(31);
      values = keys + s.keys * kRowStride;
      query = values + s.keys * kRowStride;
      grad = query + s.queries * wide;
      key_grad = grad + s.queries * wide;
      value_grad = key_grad + s.keys * wide;
      delta = value_grad + s.keys * wide;
      logs = delta + span;
      query_t = logs + span;
      grad_t = query_t + s.depth * kSpan;
      weight = grad_t + s.depth * kSpan;
      slope = weight + kKeys * kRowStride;
      query_grad = slope + kKeys * kRowStride;
      bias = query_grad + s.depth * kRowStride;
    }
  };

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const Dropout drops(dropout, in + shape.dropout());
    float* scratch = aligned_scratch(work);
    int64_t all = shape.batch * shape.groups, slots = smaller(workers, all);
    parallel(slots, [&](int64_t slot) {
      Scratch s(shape,
                scratch + slot * attention_grad_slot(shape.queries, shape.keys, shape.depth));
      for (int64_t i = slot * all / slots; i < (slot + 1) * all / slots; ++i)
        group(i / shape.groups, i % shape.groups, s, drops, in, out);
    });
  }

  void group(int64_t b, int64_t g, const Scratch& s, const Dropout& drops, const orr_buffer* in,
             const orr_buffer* out) const {
    const int64_t wide = shape.padded_depth(), depth = shape.depth, readers = shape.readers();
    copy_rows(host<S>(in[2]) + k.at(b, g), k.row, shape.keys, depth, s.keys, kRowStride, depth);
    copy_rows(host<S>(in[3]) + v.at(b, g), v.row, shape.keys, depth, s.values, kRowStride, depth);
    for (int64_t i = 0; i < shape.keys * wide; i += 16)
      store(s.key_grad + i, splat(0.0f)), store(s.value_grad + i, splat(0.0f));
    for (int64_t h = g * readers; h < (g + 1) * readers; ++h) head(b, h, s, drops, in, out);
    write_rows(s.key_grad, shape.scale, host<S>(out[1]) + gk.at(b, g), gk.row);
    write_rows(s.value_grad, 1.0f, host<S>(out[2]) + gv.at(b, g), gv.row);
  }

  // A head's bias and, if it is wanted, its gradient, [queries][keys].
  struct HeadBias {
    const S* from = nullptr;
    S* grad = nullptr;
  };
  HeadBias bias_of(int64_t b, int64_t h, const orr_buffer* in, const orr_buffer* out) const {
    HeadBias found;
    if (shape.biased) found.from = host<S>(in[shape.bias]) + bias.at(b, h);
    if (!bias_grad) return found;
    const int64_t scores = shape.queries * shape.keys;
    found.grad = host<S>(out[3]) + (b * shape.heads + h) * scores;
    for (int64_t i = 0; i < scores; ++i) store_one(found.grad + i, 0.0f);  // of keys not seen
    return found;
  }

  void head(int64_t b, int64_t h, const Scratch& s, const Dropout& drops, const orr_buffer* in,
            const orr_buffer* out) const {
    const int64_t row = dropout.row(b, h, shape.queries);
    const HeadBias added = bias_of(b, h, in, out);
    gather(b, h, s, in);
    for (int64_t first = 0; first < shape.queries; first += kSpan)
      span(first, smaller(kSpan, shape.queries - first), s, drops, row, added,
           host<S>(in[4]) + o.at(b, h), host<S>(out[0]) + gq.at(b, h));
  }

  void gather(int64_t b, int64_t h, const Scratch& s, const orr_buffer* in) const {
    int64_t wide = shape.padded_depth(), depth = shape.depth;
    copy_rows(host<S>(in[1]) + q.at(b, h), q.row, shape.queries, depth, s.query, wide, wide);
    copy_rows(host<S>(in[0]) + go.at(b, h), go.row, shape.queries, depth, s.grad, wide, wide);
    const float* from = host<float>(in[5]) + b * lse.batch + h * lse.head;
    for (int64_t t = 0; t < shape.queries; ++t) {
      const float log = from[t * lse.row];  // -inf where no key is seen: scores less 0 are -inf
      s.logs[t] = log == -HUGE_VALF ? 0.0f : log;
    }
  }

  // The queries [t, t + count): their gradient, and what they add to those of keys and values;
  // `row` numbers query 0.
  void span(int64_t t, int64_t count, const Scratch& s, const Dropout& drops, int64_t row,
            const HeadBias& added, const S* out, S* to) const {
    int64_t wide = shape.padded_depth(), depth = shape.depth;
    for (int64_t i = 0; i < count; i += kQueries) {
      int64_t n = smaller(kQueries, count - i);
      pack_panels<kQueries>(s.query + (t + i) * wide, wide, 1, n, depth, s.query_t + i * depth, 0);
      pack_panels<kQueries>(s.grad + (t + i) * wide, wide, 1, n, depth, s.grad_t + i * depth, 0);
      pack_panels<kQueries>(out + (t + i) * o.row, o.row, 1, n, depth, s.query_grad, 0);
      for (int64_t j = 0; j < n; j += 16)
        dot_lanes(s.query_grad + j, s.grad_t + i * depth + j, s.delta + t + i + j);
    }
    const int64_t begin = shape.first(t) / kKeys * kKeys, end = shape.end(t + count - 1);
    for (int64_t first = begin; first < end; first += kKeys)
      block(t, count, first, smaller(kKeys, end - first), first > begin, s, drops, row, added);
    alignas(64) float factor[kQueries];
    for (int i = 0; i < kQueries; ++i) factor[i] = shape.scale;
    for (int64_t i = 0; i < count; i += kQueries)
      if (end > begin)
        write_transposed(s.query_grad + i, kRowStride, depth, int(smaller(kQueries, count - i)),
                         factor, to + (t + i) * gq.row, gq.row);
      else
        for (int64_t j = i; j < smaller(i + kQueries, count); ++j)
          for (int64_t d = 0; d < depth; ++d) store_one(to + (t + j) * gq.row + d, 0.0f);
  }

  // The sum over the depth in the order of the products with v, so that where o is v they cancel.
  void dot_lanes(const float* x, const float* y, float* to) const {
    v16f sum = splat(0.0f);
    for (int64_t d = 0; d < shape.depth; ++d)
      sum = fma(load(x + d * kQueries), load(y + d * kQueries), sum);
    store(to, sum);
  }

  // Keys [first, first + n) under the span's queries; `begun`: not the first of them.
  void block(int64_t t, int64_t count, int64_t first, int64_t n, bool begun, const Scratch& s,
             const Dropout& drops, int64_t row, const HeadBias& added) const {
    int64_t depth = shape.depth;
    alignas(64) float ones[kQueries];
    for (float& one : ones) one = 1.0f;
    int64_t some = count,
            all = 0;  // the queries [some, all) are those of panels that see something
    for (int64_t i = 0; i < count; i += kQueries) {
      int queries = int(smaller(kQueries, count - i)), vectors = (queries + 15) / 16;
      int64_t last = shape.end(t + smaller(i + kQueries, count) - 1) - first;
      int64_t keys = smaller(n, ceil_div(larger(0, last), kMicroRows) * kMicroRows);
      const bool hidden =
          shape.first(t + i) >= first + n ||
          (added.from && hides(added.from + (t + i) * bias.row + first, bias.row, queries, keys));
      if (hidden) {
        clear_panel(i, keys, s);
      } else {
        some = smaller(some, i), all = i + queries;
        panel(t + i, i, queries, first, keys, s, drops, row, added);
      }
      if (added.grad && !hidden)
        write_transposed(s.slope + i, kRowStride, keys, queries, ones,
                         added.grad + (t + i) * shape.keys + first, shape.keys);
      for (int64_t d = 0; d < depth; d += kMicroRows)
        if ((keys > 0 && !hidden) || !begun)
          multiply_micro<float>(
              int(smaller(kMicroRows, depth - d)), vectors,
              {hidden ? 0 : keys, s.keys + first * kRowStride + d, kRowStride, s.slope + i,
               kRowStride, s.query_grad + d * kRowStride + i, kRowStride, begun, nullptr});
    }
    for (int64_t i = 0; i < n; i += kMicroRows) {
      int rows = int(smaller(kMicroRows, n - i));
      int64_t from = 0;  // the first panel that sees one of these keys
      while (shape.end(t + smaller(from + kQueries, count) - 1) <= first + i) from += kQueries;
      from = larger(from, some);
      if (from >= all) continue;
      sum_over_queries(s.weight + i * kRowStride + from, rows, s.grad, t + from, all - from,
                       s.value_grad, first + i);
      sum_over_queries(s.slope + i * kRowStride + from, rows, s.query, t + from, all - from,
                       s.key_grad, first + i);
    }
  }

  // The weights and slopes of a panel of queries that sees none of these keys.
  void clear_panel(int64_t at, int64_t keys, const Scratch& s) const {
    for (int64_t i = 0; i < keys; ++i)
      for (int64_t j = at; j < at + kQueries; j += 16)
        store(s.weight + i * kRowStride + j, splat(0.0f)),
            store(s.slope + i * kRowStride + j, splat(0.0f));
  }

  // Softmax weights and their gradient for one panel of queries, at column `at` of the span.
  void panel(int64_t t, int64_t at, int queries, int64_t first, int64_t keys, const Scratch& s,
             const Dropout& drops, int64_t row, const HeadBias& added) const {
    const int vectors = (queries + 15) / 16;
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
      leave_out(Draws(drops, row + t + 16 * j, shape.keys, first), keys, s.slope + at + 16 * j);
    if (added.from)
      add_bias(added.from + t * bias.row + first, bias.row, queries, keys, shape.scale, s.bias,
               s.weight + at, kRowStride);
    for (int j = 0; j < vectors; ++j) {
      int64_t t16 = t + 16 * j, to = at + 16 * j;
      v16f logs = load(s.logs + t16), delta = load(s.delta + t16);
      v16f scale = splat(shape.last_scale());
      const int64_t some = shape.first(t16 + 15) - first, whole = shape.end(t16) - first;
      for (int64_t i = 0; i < keys; ++i, to += kRowStride) {
        v16f w = exp_negative(fma(load(s.weight + to), scale, -logs));
        if (i < some || i >= whole) w = select(sees(shape, first + i, t16), w, splat(0.0f));
        store(s.weight + to, w);
        const v16f slope = w * (load(s.slope + to) - delta);
        // What a bias gets for a key that is not seen is +0, as where no block was computed.
        store(s.slope + to, added.grad ? slope + splat(0.0f) : slope);
      }
    }
    for (int j = 0; j < vectors && dropout.on(); ++j)
      leave_out(Draws(drops, row + t + 16 * j, shape.keys, first), keys, s.weight + at + 16 * j);
  }

  // From products with v, and from the weights that values are multiplied by.
  void leave_out(Draws draws, int64_t keys, float* x) const {
    const v16f scale = splat(float(dropout.scale()));
    for (int64_t i = 0; i < keys; ++i, x += kRowStride)
      store(x, select(draws.next(), load(x) * scale, splat(0.0f)));
  }

  // to[key][d] += sum over queries of a[key][query] * rows[query][d].
  void sum_over_queries(const float* a, int keys, const float* rows, int64_t t, int64_t count,
                        float* to, int64_t key) const {
    int64_t wide = shape.padded_depth();
    for (int64_t d = 0; d < wide; d += kQueries)
      multiply_micro<float, Along::k, true>(keys, int(smaller(kMicroVectors, (wide - d) / 16)),
                                            {count, a, kRowStride, rows + t * wide + d, wide,
                                             to + key * wide + d, wide, true, nullptr});
  }

  void write_rows(const float* from, float factor, S* to, int64_t step) const {
    int64_t wide = shape.padded_depth();
    for (int64_t i = 0; i < shape.keys; ++i)
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
  int64_t workers;
};

}  // namespace

Kernel* make_attention_grad(const orr_op& op) {
  if (op.in[0].dtype == ORR_BF16) return new AttentionGrad<bf16>(op);
  if (op.in[0].dtype == ORR_F16) return new AttentionGrad<f16>(op);
  return new AttentionGrad<float>(op);
}

}  // namespace orr_cpu::ORR_ISA
