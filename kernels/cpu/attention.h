// SPDX-License-Identifier: Apache-2.0
//
// What attention and its gradient share. Both work on scores with keys as rows and queries as
// lanes. So maxima and sums over keys are plain vector operations, and as every query has a lane of
// its own, its bits depend neither on its neighbours nor on the instruction set.
#pragma once

#include <orrery/sdk/attention.hpp>

#include "kernel.h"
#include "pack.h"

namespace orr_cpu::ORR_ISA {

constexpr int64_t kKeys = 128;                    // in a block; fixed, because it determines bits
constexpr int64_t kQueries = Lanes<float>::cols;  // in a panel

// One [B,H,rows,cols] operand whose last stride is 1.
struct Heads {
  int64_t batch, head, row;

  explicit Heads(const orr_tensor& t)
      : batch(t.strides[0]), head(t.strides[1]), row(t.strides[2]) {}
  int64_t at(int64_t b, int64_t h) const { return b * batch + h * head; }
};

struct AttentionShape {
  int64_t batch, heads, groups, queries, keys, depth;  // groups: heads of keys and values
  float scale;
  orr::AttentionSight sight;
  bool biased;
  int bias;  // the input that the bias is or would be

  AttentionShape(const orr_tensor& q, const orr_tensor& k, const orr_op& op, int operands)
      : batch(q.dims[0]),
        heads(q.dims[1]),
        groups(k.dims[1]),
        queries(q.dims[2]),
        keys(k.dims[2]),
        depth(q.dims[3]),
        scale(float(attr_real(op, "scale", 1.0))),
        sight(op, q.dims[2], k.dims[2]),
        biased(orr::attention_has_bias(op, operands)),
        bias(operands) {}

  // The keys that query t sees: [first(t), end(t)), both of which only grow from query to query.
  // They take in what they call, which is no function of this instruction set (kernel.h).
  [[gnu::flatten]] int64_t first(int64_t t) const { return sight.begin(t); }
  [[gnu::flatten]] int64_t end(int64_t t) const { return sight.end(t); }
  // How many heads of queries read one of keys.
  int64_t readers() const { return heads / groups; }
  int dropout() const { return bias + biased; }  // the first input that dropout would have
  // What is still to be multiplied by, once a bias was added.
  float last_scale() const { return biased ? 1.0f : scale; }
  int64_t padded_depth() const { return (depth + 15) & ~int64_t(15); }
};

// exp for softmax, where x <= 0 or nearly so: below -87 the result is 0.
ORR_INLINE v16f exp_negative(v16f x) {
  constexpr float c[] = {0x1p-1f, 0x1.55548ep-3f, 0x1.55545ep-5f, 0x1.123bep-7f, 0x1.6db4e4p-10f};
  v16f in = max(splat(-87.0f), x);
  v16f n = round_even(in * splat(0x1.715476p+0f));
  v16f r = fma(n, splat(-0x1.62e43p-1f), in);
  r = fma(n, splat(0x1.05c61p-29f), r);
  v16f y = fma(polynomial(r, c), r * r, r) + splat(1.0f);
  v16f power = as_float(shift_left(to_int_even(n) + splat_int(127), 23));
  return select(x < splat(-87.0f), splat(0.0f), y * power);
}

// The lanes, of the panel that starts at query t, whose queries see the key.
ORR_INLINE m16 sees(const AttentionShape& s, int64_t key, int64_t t) {
  const int64_t meets = key - (s.keys - s.queries) - t, window = s.sight.window;
  const auto behind = [](int64_t lane) {
    return lane_index() > splat_int(int32_t(smaller(larger(lane, -1), 16)));
  };
  const m16 some = behind(s.sight.causal ? meets - 1 : window ? meets - window : -1);
  if (!window) return some;
  return some & (splat_int(int32_t(smaller(larger(meets + window, 0), 16))) > lane_index());
}

// Copies rows to floats kRowStride or more apart, padded with zeros to `width`.
template <class S>
inline void copy_rows(const S* from, int64_t from_step, int64_t rows, int64_t cols, float* to,
                      int64_t to_step, int64_t width) {
  for (int64_t i = 0; i < rows; ++i, from += from_step, to += to_step)
    for (int64_t c = 0; c < width; c += 16)
      store(to + c, c + 16 <= cols ? load(from + c, Full{}) : load(from + c, int(cols - c)));
}

// to[lane][r] = from[r*step + lane] * factor[lane] for `rows` rows and `lanes` lanes.
template <class S>
inline void write_transposed(const float* from, int64_t step, int64_t rows, int lanes,
                             const float* factor, S* to, int64_t to_step) {
  for (int64_t r = 0; r < rows; r += 16) {
    int count = int(smaller(16, rows - r));
    const float* row[16];
    row_pointers(from + r * step, step, count, row);
    for (int lane = 0; lane < lanes; lane += 4) {
      v16f column[4];
      load_columns(row, lane, column);
      for (int j = 0; j < 4 && lane + j < lanes; ++j) {
        v16f x = column[j] * splat(factor[lane + j]);
        if (count == 16)
          store(to + (lane + j) * to_step + r, x, Full{});
        else
          store(to + (lane + j) * to_step + r, x, count);
      }
    }
  }
}

// score[key][query] = scale * score + bias[query][key], rows of scores `step` apart. `panel` holds
// kKeys * kQueries floats. REQUIRES: no more than kQueries queries and kKeys keys.
template <class S>
inline void add_bias(const S* bias, int64_t bias_step, int queries, int64_t keys, float scale,
                     float* panel, float* score, int64_t step) {
  pack_panels<kQueries>(bias, bias_step, 1, queries, keys, panel, 0);
  for (int64_t i = 0; i < keys; ++i, panel += kQueries, score += step)
    for (int j = 0; j < queries; j += 16)
      store(score + j, fma(load(score + j), splat(scale), load(panel + j)));
}

// Whether the bias is -infinity for all of these keys and queries. A block of which that is so has
// weights of 0, and adds nothing to any sum.
template <class S>
inline bool hides(const S* bias, int64_t bias_step, int64_t queries, int64_t keys) {
  if (bias_step == 0) queries = smaller(1, queries);
  for (int64_t t = 0; t < queries; ++t, bias += bias_step) {
    int64_t i = 0;
    for (; i + 16 <= keys; i += 16)
      if (bits(load(bias + i, Full{}) != -infinity())) return false;
    for (; i < keys; ++i)
      if (!(load_one(bias + i) == -HUGE_VALF)) return false;
  }
  return true;
}

}  // namespace orr_cpu::ORR_ISA
