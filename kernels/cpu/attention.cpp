// SPDX-License-Identifier: Apache-2.0
//
// attention, one head at a time. It goes over blocks of keys with a running maximum and sum, so
// that only the scores of one block exist at a time, and stay in cache.
#include "attention.h"
#include "attention_dropout.h"
#include "attention_plan.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class S>
struct Attention : Kernel {
  explicit Attention(const orr_op& op)
      : shape(op.in[0], op.in[1], op, orr::attention_operands),
        q(op.in[0]),
        k(op.in[1]),
        v(op.in[2]),
        bias(op.in[shape.biased ? shape.bias : 0]),
        o(op.out[0]),
        lse(op.out[1]),
        dropout(op, shape.dropout()),
        workers(threads()) {}

  // A slot's scratch.
  struct Scratch {
    float *keys, *values;  // rows, kRowStride apart
    float* query;          // [depth][kQueries]
    float *score, *bias;   // [kKeys][kQueries]
    float* sum;            // [depth][kQueries]

    Scratch(const AttentionShape& s, float* p) : keys(p) {
      values = keys + s.keys * kRowStride;
      query = values + s.keys * kRowStride;
      score = query + s.depth * kQueries;
      bias = score + kKeys * kQueries;
      sum = bias + kKeys * kQueries;
    }
  };

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const S *pq = host<S>(in[0]), *pk = host<S>(in[1]), *pv = host<S>(in[2]);
    const S* pb = shape.biased ? host<S>(in[shape.bias]) : nullptr;
    S* po = host<S>(out[0]);
    float* pl = host<float>(out[1]);
    const Dropout drops(dropout, in + shape.dropout());
    float* scratch = aligned_scratch(work);
    int64_t all = shape.batch * shape.heads, parts = all < 2 * workers ? 2 * workers : 1;
    int64_t panels = ceil_div(shape.queries, kQueries), slots = smaller(workers, all * parts);
    parallel(slots, [&](int64_t slot) {
      Scratch s(shape, scratch + slot * attention_slot(shape.queries, shape.keys, shape.depth));
      int64_t packed = -1;  // the head of keys and values
      for (int64_t i = slot * all * parts / slots; i < (slot + 1) * all * parts / slots; ++i) {
        int64_t head = i / parts, part = i % parts, b = head / shape.heads, h = head % shape.heads;
        const int64_t group = h / shape.readers();
        if (const int64_t wanted = b * shape.groups + group; wanted != packed) {
          copy_rows(pk + k.at(b, group), k.row, shape.keys, shape.depth, s.keys, kRowStride,
                    shape.depth);
          copy_rows(pv + v.at(b, group), v.row, shape.keys, shape.depth, s.values, kRowStride,
                    shape.depth);
          packed = wanted;
        }
        for (int64_t p = panels * part / parts; p < panels * (part + 1) / parts; ++p)
          panel(p * kQueries, s, drops, dropout.row(b, h, shape.queries), pq + q.at(b, h),
                pb + (pb ? bias.at(b, h) : 0), po + o.at(b, h),
                pl + b * lse.batch + h * lse.head + p * kQueries * lse.row);
      }
    });
  }

  // The queries [t, t + kQueries); `row` numbers query 0.
  void panel(int64_t t, const Scratch& s, const Dropout& drops, int64_t row, const S* from,
             const S* added, S* to, float* to_lse) const {
    int count = int(smaller(kQueries, shape.queries - t)), vectors = (count + 15) / 16;
    pack_panels<kQueries>(from + t * q.row, q.row, 1, count, shape.depth, s.query, 0);
    v16f top[kMicroVectors], total[kMicroVectors];
    for (int j = 0; j < kMicroVectors; ++j) top[j] = -infinity(), total[j] = splat(0.0f);
    const int64_t begin = shape.first(t) / kKeys * kKeys, end = shape.end(t + count - 1);
    bool begun = false;
    for (int64_t first = begin; first < end; first += kKeys) {
      int64_t n = smaller(kKeys, end - first);
      if (shape.biased && hides(added + t * bias.row + first, bias.row, count, n)) continue;
      for (int64_t i = 0; i < n; i += kMicroRows)
        multiply_micro<float, Along::k, true>(
            int(smaller(kMicroRows, n - i)), vectors,
            {shape.depth, s.keys + (first + i) * kRowStride, kRowStride, s.query, kQueries,
             s.score + i * kQueries, kQueries, false, nullptr});
      if (shape.biased)
        add_bias(added + t * bias.row + first, bias.row, count, n, shape.scale, s.bias, s.score,
                 kQueries);
      for (int j = 0; j < vectors; ++j) {
        weigh(t + 16 * j, first, n, begun, s.score + 16 * j, s.sum + 16 * j, top[j], total[j]);
        if (dropout.on())
          leave_out(Draws(drops, row + t + 16 * j, shape.keys, first), n, s.score + 16 * j);
      }
      for (int64_t d = 0; d < shape.depth; d += kMicroRows)
        multiply_micro<float>(int(smaller(kMicroRows, shape.depth - d)), vectors,
                              {n, s.values + first * kRowStride + d, kRowStride, s.score, kQueries,
                               s.sum + d * kQueries, kQueries, begun, nullptr});
      begun = true;
    }
    for (int64_t i = 0; i < shape.depth * kQueries && !begun; i += 16)
      store(s.sum + i, splat(0.0f));
    finish(count, vectors, s, top, total, to + t * o.row, to_lse);
  }

  // Sixteen queries from t, n keys from `first`: scores become weights, and what was summed before
  // is scaled to the new maximum, if anything was.
  void weigh(int64_t t, int64_t first, int64_t n, bool begun, float* score, float* sum, v16f& top,
             v16f& total) const {
    // All of the queries see the keys [some, whole).
    const int64_t some = larger(0, smaller(n, shape.first(t + 15) - first)),
                  whole = larger(some, smaller(n, shape.end(t) - first));
    v16f scale = splat(shape.last_scale()), best = top;
    const auto look = [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const v16f higher = max(best, load(score + i * kQueries) * scale);
        best = select(sees(shape, first + i, t), higher, best);
      }
    };
    look(0, some);
    for (int64_t i = some; i < whole; ++i) best = max(best, load(score + i * kQueries) * scale);
    look(whole, n);
    v16f base = select(best == -infinity(), splat(0.0f), best), block = splat(0.0f);
    const auto weight = [&](int64_t i) {
      return exp_negative(fma(load(score + i * kQueries), scale, -base));
    };
    const auto add_seen = [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const v16f w = select(sees(shape, first + i, t), weight(i), splat(0.0f));
        store(score + i * kQueries, w);
        block = block + w;
      }
    };
    add_seen(0, some);
    for (int64_t i = some; i < whole; ++i) {
      v16f w = weight(i);
      store(score + i * kQueries, w);
      block = block + w;
    }
    add_seen(whole, n);
    v16f shrink = exp_negative(top - base);
    total = fma(total, shrink, block);
    top = best;
    if (!begun || !bits(shrink != splat(1.0f))) return;
    for (int64_t d = 0; d < shape.depth; ++d)
      store(sum + d * kQueries, load(sum + d * kQueries) * shrink);
  }

  static void leave_out(Draws draws, int64_t n, float* weight) {
    for (int64_t i = 0; i < n; ++i, weight += kQueries)
      store(weight, select(draws.next(), load(weight), splat(0.0f)));
  }

  void finish(int count, int vectors, const Scratch& s, const v16f* top, const v16f* total, S* to,
              float* to_lse) const {
    alignas(64) float factor[kQueries], logs[kQueries];
    for (int j = 0; j < vectors; ++j) {
      v16f none = splat(0.0f), whole = splat(float(dropout.scale()));
      store(factor + 16 * j, select(total[j] == none, none, whole / total[j]));
      store(logs + 16 * j, top[j] + log(total[j]));
    }
    for (int i = 0; i < count; ++i) to_lse[i * lse.row] = logs[i];
    write_transposed(s.sum, kQueries, shape.depth, count, factor, to, o.row);
  }

  AttentionShape shape;
  Heads q, k, v, bias, o, lse;
  orr::AttentionDropout dropout;
  int64_t workers;
};

}  // namespace

Kernel* make_attention(const orr_op& op) {
  if (op.in[0].dtype == ORR_BF16) return new Attention<bf16>(op);
  if (op.in[0].dtype == ORR_F16) return new Attention<f16>(op);
  return new Attention<float>(op);
}

}  // namespace orr_cpu::ORR_ISA
