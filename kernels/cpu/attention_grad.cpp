// SPDX-License-Identifier: Apache-2.0
//
// attention_grad. A head of keys and values, with the heads of queries that read it one after
// another, is the task of one thread; heads that are left over when every thread has had as many as
// the others, such as the few of grouped queries, are computed by all threads together.
#include "attention_grad.h"

namespace orr_cpu::ORR_ISA {
namespace {

template <class S>
struct AttentionGrad : Kernel {
  using Span = GradSpan<S>;

  explicit AttentionGrad(const orr_op& op) : blocks(op), shape(blocks.shape), workers(threads()) {}

  struct Launch {
    const orr_buffer *in, *out;
    Dropout drops;
  };

  void launch(const orr_buffer* in, const orr_buffer* out, const orr_buffer* work) override {
    const Launch l{in, out, Dropout(blocks.dropout, in + shape.dropout())};
    float* scratch = aligned_scratch(work);
    const int64_t all = shape.batch * shape.groups, each = all / workers;
    if (each)
      parallel(workers, [&](int64_t slot) {
        const GradScratch s = scratch_of(scratch, slot);
        for (int64_t i = slot * each; i < (slot + 1) * each; ++i) alone(i, s, l);
      });
    if (each * workers < all) together(each * workers, all - each * workers, scratch, l);
  }

  GradScratch scratch_of(float* scratch, int64_t slot) const {
    const int64_t size = attention_grad_slot(shape.queries, shape.keys, shape.depth);
    return GradScratch(shape, scratch + slot * size);
  }
  Span span(int64_t group, int64_t reader, int64_t t, const Launch& l) const {
    const int64_t b = group / shape.groups, g = group % shape.groups;
    return blocks.span_of(b, g * shape.readers() + reader, t, l.in, l.out);
  }
  void begin_keys(int64_t group, int64_t first, int64_t end, const GradScratch& s,
                  const Launch& l) const {
    blocks.begin_keys(group / shape.groups, group % shape.groups, first, end, s, l.in);
  }
  void end_keys(int64_t group, int64_t first, int64_t end, const GradScratch& s,
                const Launch& l) const {
    blocks.end_keys(group / shape.groups, group % shape.groups, first, end, s, l.out);
  }

  void alone(int64_t group, const GradScratch& s, const Launch& l) const {
    begin_keys(group, 0, shape.keys, s, l);
    for (int64_t reader = 0; reader < shape.readers(); ++reader)
      for (int64_t t = 0; t < shape.queries; t += kSpan)
        span_alone(span(group, reader, t, l), s, l);
    end_keys(group, 0, shape.keys, s, l);
  }
  void span_alone(const Span& x, const GradScratch& s, const Launch& l) const {
    const int64_t begin = blocks.begin(x), end = blocks.end(x);
    for (int64_t i = 0; i < x.count; i += kQueries) blocks.begin_panel(x, i, s, s.output);
    for (int64_t first = begin; first < end; first += kKeys) {
      const GradBlock b = blocks.look(x, first);
      for (int64_t i = 0; i < x.count; i += kQueries) {
        blocks.weigh(x, i, b, 0, b.n, s, l.drops);
        blocks.add_to_queries(x, i, b, first > begin, s, s.slope);
      }
      blocks.add_to_keys(x, b, 0, b.n, s);
    }
    for (int64_t i = 0; i < x.count; i += kQueries) blocks.end_panel(x, i, begin < end, s);
  }

  // `n` heads from `head` on, fewer than threads. Their scratch is that of the first slots, the
  // slopes of all keys lie behind all slots. Threads first take parts of the keys, then panels of
  // the queries, whose gradients are sums over keys.
  void together(int64_t head, int64_t n, float* scratch, const Launch& l) const {
    float* const slopes =
        scratch + workers * attention_grad_slot(shape.queries, shape.keys, shape.depth);
    const auto each = [&](int64_t count, auto&& fn) {
      const int64_t tasks = n * count, slots = smaller(workers, tasks);
      parallel(slots, [&](int64_t slot) {
        const GradScratch own = scratch_of(scratch, slot);
        for (int64_t task = slot; task < tasks; task += slots) {
          const int64_t i = task / count;
          GradScratch s = scratch_of(scratch, i);
          s.weight = own.weight, s.bias = own.bias, s.output = own.output;
          s.slope = slopes + i * shape.keys * kRowStride;
          fn(head + i, task % count, s);
        }
      });
    };
    const int64_t parts = ceil_div(shape.keys, kPartKeys);
    const auto end_of = [&](int64_t part) { return smaller((part + 1) * kPartKeys, shape.keys); };
    each(parts, [&](int64_t group, int64_t part, const GradScratch& s) {
      begin_keys(group, part * kPartKeys, end_of(part), s, l);
    });
    for (int64_t reader = 0; reader < shape.readers(); ++reader)
      for (int64_t t = 0; t < shape.queries; t += kSpan) span_together(reader, t, each, l);
    each(parts, [&](int64_t group, int64_t part, const GradScratch& s) {
      end_keys(group, part * kPartKeys, end_of(part), s, l);
    });
  }

  template <class Each>
  void span_together(int64_t reader, int64_t t, const Each& each, const Launch& l) const {
    const Span any = span(0, reader, t, l);
    const int64_t begin = blocks.begin(any), end = blocks.end(any);
    const int64_t panels = ceil_div(any.count, kQueries), per_block = ceil_div(kKeys, kPartKeys);
    each(panels, [&](int64_t group, int64_t panel, const GradScratch& s) {
      blocks.begin_panel(span(group, reader, t, l), panel * kQueries, s, s.output);
    });
    const int64_t parts = ceil_div(larger(0, end - begin), kKeys) * per_block;
    if (parts)
      each(parts, [&](int64_t group, int64_t part, const GradScratch& s) {
        keys_part(span(group, reader, t, l), begin + part / per_block * kKeys,
                  part % per_block * kPartKeys, s, l);
      });
    each(panels, [&](int64_t group, int64_t panel, const GradScratch& s) {
      const Span x = span(group, reader, t, l);
      for (int64_t first = begin; first < end; first += kKeys)
        blocks.add_to_queries(x, panel * kQueries, blocks.look(x, first), first > begin, s,
                              s.slope + first * kRowStride);
      blocks.end_panel(x, panel * kQueries, begin < end, s);
    });
  }

  // A part of the block of keys at `first`, from its key `lo` on.
  void keys_part(const Span& x, int64_t first, int64_t lo, GradScratch s, const Launch& l) const {
    const GradBlock b = blocks.look(x, first);
    const int64_t hi = smaller(lo + kPartKeys, b.n);
    s.slope += (first + lo) * kRowStride;
    for (int64_t i = 0; i < x.count; i += kQueries) blocks.weigh(x, i, b, lo, hi, s, l.drops);
    blocks.add_to_keys(x, b, lo, hi, s);
  }

  GradBlocks<S> blocks;
  const AttentionShape& shape;
  int64_t workers;
};

}  // namespace

Kernel* make_attention_grad(const orr_op& op) {
  if (op.in[0].dtype == ORR_BF16) return new AttentionGrad<bf16>(op);
  if (op.in[0].dtype == ORR_F16) return new AttentionGrad<f16>(op);
  return new AttentionGrad<float>(op);
}

}  // namespace orr_cpu::ORR_ISA
