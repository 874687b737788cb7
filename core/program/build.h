// SPDX-License-Identifier: Apache-2.0
//
// Functions for building programs: tensor operations with conveniences such as negative dims, means
// and splits, written in ops. Dims are 0-based here; negative ones count from the end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "program/program.h"

namespace orrery::build {

// The matrix product of the last two dims. Leading dims of extent 1, or that one side lacks, are
// repeated to those of the other side.
ValueId matmul(Program& p, ValueId a, ValueId b, bool transpose_a = false,
               bool transpose_b = false);
ValueId swap_last(Program& p, ValueId x);           // the last two dims
ValueId reshape(Program& p, ValueId x, Dims dims);  // one dim may be -1
ValueId transpose(Program& p, ValueId x, Dims permutation);
ValueId move_dim(Program& p, ValueId x, size_t from, size_t to);  // other dims keep their order
ValueId slice(Program& p, ValueId x, int64_t dim, int64_t begin, int64_t end);
std::vector<ValueId> split(Program& p, ValueId x, int64_t dim, const Dims& sizes);
ValueId concat(Program& p, const std::vector<ValueId>& xs, int64_t dim);
// Of dim `dim` (0-based, no negative one) every step-th index, from the first on.
ValueId every(Program& p, ValueId x, int64_t dim, int64_t step);
// `value` so many times before and behind the elements of dim `dim` (as above).
ValueId pad(Program& p, ValueId x, int64_t dim, int64_t before, int64_t after, double value);
// The windows of the dims before the last, and their sums (ops/windows.cpp); one number for each
// dim.
ValueId windows(Program& p, ValueId x, const Dims& size, const Dims& stride, const Dims& dilation);
ValueId fold(Program& p, ValueId x, const Dims& length, const Dims& stride, const Dims& dilation);
ValueId broadcast(Program& p, ValueId x, const Dims& dims);
// x repeated to the dims of `like`, with the relation to the batch that `like` has.
ValueId broadcast_like(Program& p, ValueId x, ValueId like);
ValueId zeros_like(Program& p, ValueId like);

// The samples' weights (Program::batch_weight) in x's dtype, with dims that broadcast to x.
ValueId weight_like(Program& p, ValueId x);
// The sum of all samples' weights over the batch; one value per program, which all means share.
ValueId total_weight(Program& p, int32_t dtype);
// Each sample's index in the batch, from 0: i64 [batch].
ValueId sample_index(Program& p);

// x with its batch dim moved to the front, as sums over the batch need it; x itself if it is there
// already, or x has none.
ValueId batch_first(Program& p, ValueId x);

// fn: "sum", "max", "min", "sumsq". Empty dims: all.
ValueId reduce(Program& p, const std::string& fn, ValueId x, Dims dims, bool keep);
// Combines values of one shape by `fn` (sum or maximum) in the binary tree (orrery/ops.h, LEAVES).
ValueId tree(Program& p, std::vector<ValueId> level, int32_t fn = ORR_FN_ADD);
// The mean. Over the batch dim it is the mean over the samples that count (Batch::mean).
ValueId mean(Program& p, ValueId x, Dims dims, bool keep);
// For each sample the mean over those of its microbatch that count, and how many these are, [n, 1,
// ...]; dim 0 of x runs over the samples. Without a batch all are one microbatch.
std::pair<ValueId, ValueId> microbatch_mean(Program& p, ValueId x);
ValueId argmax(Program& p, ValueId x);  // last dim, i64
std::vector<ValueId> topk(Program& p, ValueId x, int64_t k);
ValueId softmax(Program& p, ValueId x);  // last dim
ValueId layernorm(Program& p, ValueId x, ValueId w, ValueId b, double eps);
ValueId rmsnorm(Program& p, ValueId x, ValueId w, double eps);
struct AttentionOptions {
  int64_t heads = 1, kv_heads = 0;  // 0: as many as heads
  bool causal = false;
  std::optional<double> scale = {};
  double dropout = 0;
  // Which scores count, and what is added to them: of dims that repeat to [B, heads, T, S].
  ValueId mask = kNone, bias = kNone;
  // Keys so many places away, or more, are not seen; 0: all are.
  int64_t window = 0;
  // The place of the first query among the keys; absent: that which makes the last query meet the
  // last key.
  std::optional<Operand> offset = {};
};
// q: [B, T, heads*d], k and v: [B, S, kv_heads*d] -> [B, T, heads*d]
ValueId attention(Program& p, ValueId q, ValueId k, ValueId v, const AttentionOptions& options);
// The mean cross-entropy of logits [..., V] and labels [...] over all positions that count. Weights
// [...] are optional; positions whose label is `ignore` have weight 0.
ValueId cross_entropy(Program& p, ValueId logits, ValueId labels, ValueId weights,
                      std::optional<int64_t> ignore);
ValueId gather(Program& p, ValueId table, ValueId index);  // [V, C], [...] -> [..., C]
// The elements of the flattened x at 0-based positions; the result has the dims of `index`.
ValueId take(Program& p, ValueId x, ValueId index);
// x with the elements at these positions replaced by `value`: one value for all, or of the dims of
// `index`. Values for the same position are added.
ValueId put(Program& p, ValueId x, ValueId index, const Operand& value);
// x [n, ...] with rows [k, ...] added at the 0-based positions [k] of its first dim.
ValueId scatter_add(Program& p, ValueId x, ValueId index, ValueId rows);
ValueId dropout(Program& p, ValueId x, double rate);
ValueId iota(Program& p, int64_t n, int32_t dtype);
ValueId categorical(Program& p, ValueId logits);  // [R, C] -> i64 [R]
ValueId slice_at(Program& p, ValueId x, int64_t dim, ValueId at, int64_t size);
ValueId update_slice(Program& p, ValueId x, ValueId u, int64_t dim, ValueId at);
ValueId stop_gradient(Program& p, ValueId x);

}  // namespace orrery::build
