// SPDX-License-Identifier: Apache-2.0
//
// Ops about the batch as a whole, and about gradients alone. batch_mean(sum, weight) is the ratio
// of the two totals, known when all microbatches are done; total(x) is the sum of x's microbatches
// over all ranks; stop_gradient is the identity that cotangents do not pass; user_gradient(y, x...)
// is y, with a gradient that the script gives (int "index", Program::with_gradient). Lowering
// expands the first two and drops the others.
//
// Between samples and the whole batch, within a pass (partition/samples/localize.cpp says how):
//
//   batch_sum      sum over the batch -> the same, complete on all ranks, so that samples may read
//                  it; its gradient completes the cotangent in turn
//   batch_gather   x[B*n, ...], n rows for each sample -> the same rows as one value for all
//                  samples; rows that fill the last microbatch up are not among them
//   batch_slice    y[B*n, ...], one value for all samples -> each sample's own rows; those that
//                  fill up get zeros. Each is the other's gradient, but that what samples give to
//                  one value is summed first
//   microbatch_sum x[B*n, ...] -> the same dims: each row is the sum of the rows of its sample's
//                  microbatch, those that fill up among them. It is its own gradient. With text
//                  "fn" = "max" it is the largest of them, without a gradient
//   sample_index   -> i64[B] (ints "dims"), each sample's number in the batch from 0; rows that
//                  fill up repeat the last one
#include <stdexcept>

#include "program/on_parts.h"

namespace orrery {
namespace {

std::vector<Type> infer_first(const OpArgs& args) { return {args.in[0]}; }

std::vector<Type> infer_mean(const OpArgs& args) {
  if (args.in[0] != args.in[1])
    throw std::invalid_argument("sum and weight differ: " + to_string(args.in[0]) + " and " +
                                to_string(args.in[1]));
  return {args.in[0]};
}

// Unnormalised: the one division by the summed weight comes at the end (program/train.h).
void mean_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[1]))
    g.p.fail_here(
        "the weights of a mean over the batch have no gradient: let none through, with "
        ":stop_gradient(), or multiply what the mean is of");
  if (g.wanted(op.in[0])) g.add(op.in[0], g.dy());
}

// dx of what the backward function was given, as one of x, which the op reads: a strategy may have
// put a cast between them.
ValueId as_read(Program& p, ValueId dx, ValueId x) {
  const OpId maker = p.value(x).producer;
  if (maker == kNone || p.type(dx) == p.type(x)) return dx;
  const Op& op = p.ops()[static_cast<size_t>(maker)];
  const bool cast = op.kind == "pointwise" && op.expr.instrs.back().fn == ORR_FN_CAST;
  return cast && p.type(op.in[0]) == p.type(dx) ? p.cast(dx, p.type(x).dtype) : dx;
}

void user_gradient(Gradient& g, const Op& op) {
  const Site site = g.p.site();
  std::vector<ValueId> dx = g.p.user_gradient(attr_int(op.attrs, "index", 0))(g.dy());
  g.p.set_site(site);
  if (dx.size() + 1 != op.in.size())
    g.p.fail_here(std::to_string(op.in.size() - 1) +
                  " gradients are wanted, the backward function returned " +
                  std::to_string(dx.size()) + ": return one for each input, or nil");
  for (size_t i = 0; i < dx.size(); ++i) {
    ValueId x = op.in[i + 1];
    if (dx[i] == kNone || !g.wanted(x)) continue;
    dx[i] = as_read(g.p, dx[i], x);
    if (g.p.type(dx[i]) != g.p.type(x))
      g.p.fail_here("the backward function returned " + to_string(g.p.type(dx[i])) + " for input " +
                    std::to_string(i + 1) + ", which is " + to_string(g.p.type(x)) +
                    ": return one of its shape and dtype");
    g.add(x, dx[i]);
  }
}

// Rows follow the batch, other dims keep their meaning.
Sharding behind_rows(const OpArgs& args, const std::vector<Type>& out) {
  Sharding s = same_dims_sharding(args, out);
  for (auto* side : {&s.in, &s.out})
    for (std::vector<int>& f : *side) f.front() = kNone;
  return s;
}

std::vector<Type> infer_rows(const OpArgs& args) {
  if (args.in[0].dims.empty()) throw std::invalid_argument("a scalar has no rows");
  return {args.in[0]};
}

std::vector<Type> infer_microbatch(const OpArgs& args) {
  const std::string fn = attr_text(args.attrs, "fn", "sum");
  if (fn != "sum" && fn != "max")
    throw std::invalid_argument("fn '" + fn + "' is neither sum nor max");
  return infer_rows(args);
}

void microbatch_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0]) && attr_text(op.attrs, "fn", "sum") != "sum")
    g.p.fail_here(
        "the largest value of a microbatch has no gradient: let none through, with "
        ":stop_gradient()");
  if (g.wanted(op.in[0])) g.add(op.in[0], g.p.add1("microbatch_sum", {g.dy()}));
}

std::vector<Type> infer_index(const OpArgs& args) {
  return {{ORR_I64, attr_ints(args.attrs, "dims")}};
}

void sum_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0])) g.add(op.in[0], g.p.completed(g.dy()));
}

void gather_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0])) g.add(op.in[0], g.p.add1("batch_slice", {g.p.completed(g.dy())}));
}

void slice_gradient(Gradient& g, const Op& op) {
  if (g.wanted(op.in[0])) g.add(op.in[0], g.p.add1("batch_gather", {g.dy()}));
}

bool become_first(OnParts& s, const Op& op) {
  s.become_same(op.out[0], op.in[0]);
  return true;
}

constexpr PartsRule kSame{.run = become_first};

}  // namespace

extern const OpDef batch_mean_op{"batch_mean",  infer_mean, same_dims_sharding,
                                 mean_gradient, no_cost,    nullptr};
extern const OpDef user_gradient_op{
    "user_gradient", infer_first, same_dims_sharding, user_gradient, no_cost, nullptr, &kSame};
extern const OpDef batch_sum_op{"batch_sum",  infer_first, same_dims_sharding,
                                sum_gradient, no_cost,     nullptr};
extern const OpDef batch_gather_op =
    OpDef{"batch_gather", infer_rows, behind_rows, gather_gradient, no_cost, nullptr}
        .with_eight_bits(takes_eight_bits);
extern const OpDef batch_slice_op =
    OpDef{"batch_slice", infer_rows, behind_rows, slice_gradient, no_cost, nullptr}.with_eight_bits(
        takes_eight_bits);
extern const OpDef microbatch_sum_op{"microbatch_sum",    infer_microbatch, behind_rows,
                                     microbatch_gradient, no_cost,          nullptr};
extern const OpDef sample_index_op{"sample_index", infer_index, behind_rows,
                                   nullptr,        no_cost,     nullptr};
extern const OpDef total_op{"total", infer_first, same_dims_sharding, nullptr,
                            no_cost, nullptr,     &linear_parts};
extern const OpDef stop_gradient_op =
    OpDef{"stop_gradient", infer_first, same_dims_sharding, nullptr,
          no_cost,         nullptr,     &linear_parts}
        .with_eight_bits(takes_eight_bits);

}  // namespace orrery
