// SPDX-License-Identifier: Apache-2.0
//
// The ops that layers are made of: normalisation, attention, losses, dropout.
#include "lua/call.h"
#include "program/build.h"
#include "run/variant.h"

namespace orrery::lua {
namespace {

void check_rate(double rate, const char* op, const char* name) {
  if (!(rate >= 0 && rate < 1))
    fail(ORR_INVALID, "{}: {} is {}, expected 0 <= {} < 1", op, name, rate, name);
}

ValueId attention(Program& p, ValueId q, ValueId k, ValueId v, const Table& options) {
  build::AttentionOptions o;
  o.heads = options.integer("heads"), o.causal = options.flag("causal");
  if (options.has("kv_heads")) o.kv_heads = options.integer("kv_heads");
  if (options.has("scale")) o.scale = options.number("scale");
  if (options.has("mask")) o.mask = options.with("mask", value_at);
  if (options.has("bias")) o.bias = options.with("bias", value_at);
  if (options.has("window")) o.window = options.integer("window");
  if (options.has("offset")) o.offset = options.with("offset", operand_at);
  const double rate = options.number("dropout");
  check_rate(rate, "attention", "dropout");
  o.dropout = tracing_training() ? rate : 0;
  return build::attention(p, q, k, v, o);
}

ValueId cross_entropy(Program& p, ValueId logits, ValueId labels, const Table& options) {
  std::optional<int64_t> ignore;
  if (options.has("ignore")) ignore = options.integer("ignore");
  const ValueId weights = options.has("weights") ? options.with("weights", value_at) : kNone;
  return build::cross_entropy(p, logits, labels, weights, ignore);
}

ValueId dropout(Program& p, ValueId x, double rate) {
  check_rate(rate, "dropout", "rate");
  if (tracing_training()) return build::dropout(p, x, rate);
  // An op of its module all the same: the stages of a pipeline, for example, may name that.
  return p.pointwise(ORR_FN_MUL, {x, Operand::number(1)});
}

}  // namespace

std::vector<Api> layer_api() {
  return {
      {"Tensor:softmax() -> Tensor; exp(x) over its sum along the last dim.", call<build::softmax>},
      {"orrery.layernorm(x: Tensor, weight: Tensor, bias: Tensor, eps: number = 1e-5) -> Tensor; "
       "Normalises the last dim to mean 0 and variance 1, then w*x + b.",
       call<build::layernorm>},
      {"orrery.rmsnorm(x: Tensor, weight: Tensor, eps: number = 1e-5) -> Tensor; Divides the last "
       "dim by its root mean square, times w.",
       call<build::rmsnorm>},
      {"orrery.attention(q: Tensor, k: Tensor, v: Tensor, options) -> Tensor; Scaled dot-product "
       "attention of queries [B,T,heads*d] to keys and values [B,S,kv_heads*d]. A query that sees "
       "no key gets zeros. "
       "@option heads: integer; how many heads share the last dim "
       "@option kv_heads?: integer; heads of keys and values, each for heads/kv_heads of the "
       "queries'; as many if left out "
       "@option causal: boolean = false; a position sees itself and earlier ones only "
       "@option scale?: number; factor of the scores; 1/sqrt(d) if left out "
       "@option dropout: number = 0; in training, the probability of leaving a weight out "
       "@option mask?: Tensor; boolean, which keys are seen: [B,heads,T,S], any dim 1, leading "
       "ones left out; for padded sequences [B,1,1,S] "
       "@option bias?: Tensor; added to the scores; dims as a mask's "
       "@option window?: integer; a position sees those less than so many places away "
       "@option offset?: operand; the 0-based place of the first query among the keys; without it "
       "the last query stands where the last key does",
       call<attention>},
      {"orrery.cross_entropy(logits: Tensor, labels: Tensor, options?) -> Tensor; Mean "
       "cross-entropy of logits [...,V] and 0-based labels [...]. "
       "@option weights?: Tensor; weight of each position "
       "@option ignore?: integer; positions with this label do not count; the mean of none is NaN",
       call<cross_entropy>},
      {"orrery.dropout(x: Tensor, rate: number) -> Tensor; In training, zeroes elements with "
       "probability `rate`, scales the rest.",
       call<dropout>},
      {"orrery.categorical(logits: Tensor) -> Tensor; Draws a 0-based class from each row of "
       "logits "
       "[R,C].",
       call<build::categorical>},
      {"orrery.training() -> boolean; Whether the function being traced is a training step.",
       call<tracing_training>},
      {"engine.trace_as(training: boolean) -> boolean; Sets what orrery.training() says from here "
       "on, and returns what it said.",
       call<trace_as>},
  };
}

}  // namespace orrery::lua
