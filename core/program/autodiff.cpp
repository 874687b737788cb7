// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode differentiation. Three ranks have samples x and a parameter w. In
//
//   y = x * w; s = sum over the batch of y^2; loss = batch_mean(s, n) + 0.1 * w^2
//
// the term of the sum s gives each rank a summand, and the penalty is the same on all ranks:
//
//   ds = 1; dy = 2 * y * ds; dw = sum over the batch of x * dy    GradientParts::partial
//   0.2 * w                                                       GradientParts::regular
//
// Nothing is divided by n yet, and no rank waits for another. The update computes
// total(dw) / n + 0.2 * w (program/train.cpp). `total` is where the ranks' summands are added.
#include "program/autodiff.h"

#include <algorithm>

#include "base/error.h"
#include "program/backward_pass.h"
#include "program/build.h"
#include "program/loss_terms.h"
#include "program/own_rows.h"

namespace orrery {
namespace {

bool is_sum(const Program& p, ValueId v) {
  return p.value(v).batch() == Batch::partial || p.value(v).batch() == Batch::mean;
}

ValueId sum(Program& p, const std::vector<ValueId>& terms) {
  ValueId total = kNone;
  for (ValueId v : terms) total = total == kNone ? v : p.pointwise(ORR_FN_ADD, {total, v});
  return total;
}

// The gradients of a loss, for each of `wrt`, by its terms.
struct TermGradients {
  std::vector<std::vector<ValueId>> sums;  // by use, not yet divided by `weight`
  std::vector<ValueId> others;             // kNone: there is none
  ValueId weight = kNone;                  // kNone: `sums` are not to be divided
};

// Differentiates the terms of the whole batch, in the first n ops. Such a term counts as a mean of
// itself over the samples: its cotangent is the weight by which its gradient will be divided.
void run_whole_batch(Program& p, ValueId loss, size_t n, BackwardPass& pass, LossTerms& terms,
                     ValueId weight, ValueId scale) {
  if (weight != kNone) scale = p.pointwise(ORR_FN_MUL, {p.cast(weight, p.type(loss).dtype), scale});
  pass.add(loss, scale);
  pass.run(n, Pass::whole_batch, &terms);
}

// The gradients of a loss that is linear in its sums. The loss's cotangent is `scale` for the
// gradients of sums and `cotangent` for the others. The others are computed in phase `late`.
// `undivided`: gradients of terms of the whole batch are not to be divided by a weight.
TermGradients gradients_of_terms(Program& p, ValueId loss, const std::vector<ValueId>& wrt,
                                 const Dependence& on, LossTerms& terms, ValueId cotangent,
                                 ValueId scale, Phase late, bool undivided = false) {
  const size_t n = p.ops().size();
  BackwardPass batch(p, wrt, on), penalty(p, wrt, on), whole_batch(p, wrt, on);
  if (p.value(loss).batch() != Batch::partial) penalty.add(loss, cotangent);
  TermGradients found;
  found.weight = terms.weight();
  if (is_sum(p, loss)) {
    if (p.value(loss).batch() == Batch::partial) batch.mark_undivided(loss);
    batch.add(loss, scale);
    batch.run(n, Pass::sums, &terms);
  }
  if (whole_batch.has_whole_batch_term(loss)) {
    if (found.weight == kNone && !undivided)
      found.weight = build::total_weight(p, p.type(loss).dtype);
    run_whole_batch(p, loss, n, whole_batch, terms, found.weight, scale);
  }
  p.set_phase(late);
  penalty.run(n, Pass::others, &terms);
  for (ValueId v : wrt) {
    found.sums.emplace_back();
    for (BackwardPass* pass : {&batch, &whole_batch})
      for (ValueId use : pass->uses(v))
        if (p.value(use).batch() != Batch::none) found.sums.back().push_back(use);
    found.others.push_back(sum(p, penalty.uses(v)));
  }
  return found;
}

// Whether y is computed from a mean over the batch that depends on one of `wrt`.
bool comes_of_mean(const Program& p, ValueId y, const std::vector<ValueId>& wrt) {
  const std::vector<char> depends = dependents(p, wrt, 0);
  std::vector<char> reached(p.values().size());
  reached[static_cast<size_t>(y)] = true;
  for (auto op = p.ops().rbegin(); op != p.ops().rend(); ++op) {
    const bool on_way = std::any_of(op->out.begin(), op->out.end(), [&](ValueId v) {
      return reached[static_cast<size_t>(v)] && depends[static_cast<size_t>(v)];
    });
    if (!on_way) continue;
    if (op->kind == "batch_mean") return true;
    for (ValueId v : op->in) reached[static_cast<size_t>(v)] = true;
  }
  return false;
}

// The sum over the batch of the gradients of all uses, divided by the weight.
ValueId mean_of(Program& p, const std::vector<ValueId>& uses, ValueId weight) {
  if (uses.empty()) return kNone;
  const ValueId whole = sum(p, uses);
  const Type type = p.type(whole);
  const ValueId divided = p.cast(whole, p.type(weight).dtype);
  return p.cast(p.add1("batch_mean", {divided, build::broadcast(p, weight, type.dims)}),
                type.dtype);
}

// The derivative of a mean is divided by the weight of all samples, which is known only after all
// microbatches: a value of a sample cannot have it.
void refuse_batch_values(const Program& p, const std::vector<ValueId>& wrt) {
  for (size_t i = 0; i < wrt.size(); ++i)
    if (p.value(wrt[i]).batch() != Batch::none)
      p.fail_here(fmt::format(
          "grad: value {} {} is one of {}, and the derivative of a mean over the batch is divided "
          "by the weight of all samples, which is known only after all microbatches; differentiate "
          "the samples' sum, with :sum() in place of :mean()",
          i + 1, to_string(p.type(wrt[i])),
          p.value(wrt[i]).batch() == Batch::sharded ? "each sample" : "the whole batch"));
}

std::vector<ValueId> derivatives_of_mean(Program& p, ValueId y, ValueId cotangent,
                                         const std::vector<ValueId>& wrt) {
  refuse_batch_values(p, wrt);
  const Dependence on = dependence(p, wrt);
  LossTerms terms(p, y, on);
  if (const std::string& why = terms.why_not_linear(); !why.empty())
    fail(ORR_FAILED,
         "{}, and grad's result would be one before all microbatches are done: apply it to each "
         "sample before the mean, or to what grad returns",
         why);
  const TermGradients h = gradients_of_terms(p, y, wrt, on, terms, cotangent, cotangent, p.phase());
  std::vector<ValueId> found;
  for (size_t i = 0; i < wrt.size(); ++i) {
    ValueId mean = mean_of(p, h.sums[i], h.weight), other = h.others[i];
    found.push_back(mean == kNone    ? other
                    : other == kNone ? mean
                                     : p.pointwise(ORR_FN_ADD, {mean, other}));
  }
  return found;
}

}  // namespace

std::vector<ValueId> pull_back(Program& p, const std::vector<ValueId>& outputs,
                               const std::vector<ValueId>& cotangents,
                               const std::vector<ValueId>& wrt, OpId first) {
  size_t n = p.ops().size();
  const Dependence on = dependence(p, wrt, static_cast<size_t>(first));
  BackwardPass backward(p, wrt, on, static_cast<size_t>(first));
  for (size_t i = 0; i < outputs.size(); ++i) backward.add(outputs[i], cotangents[i]);
  backward.run(n, Pass::all);
  std::vector<ValueId> found;
  for (ValueId v : wrt) found.push_back(sum(p, backward.uses(v)));
  return found;
}

std::vector<ValueId> derivatives(Program& p, ValueId y, ValueId cotangent,
                                 const std::vector<ValueId>& values) {
  const auto is_in_y = [&](ValueId v) {
    return dependents(p, {v}, 0)[static_cast<size_t>(y)] != 0;
  };
  std::vector<ValueId> wrt;
  for (ValueId v : values) wrt.push_back(met_in(p, v, is_in_y));
  for (size_t i = 0; i < wrt.size(); ++i)
    if (!is_in_y(wrt[i]))
      p.fail_here(fmt::format(
          "grad: what is differentiated does not depend on value {} {} by way of real numbers; "
          "leave it out, or write zeros where zeros are meant",
          i + 1, to_string(p.type(wrt[i]))));
  std::vector<ValueId> found = comes_of_mean(p, y, wrt) ? derivatives_of_mean(p, y, cotangent, wrt)
                                                        : pull_back(p, {y}, {cotangent}, wrt);
  for (size_t i = 0; i < wrt.size(); ++i)  // no cotangent: y is piecewise constant in it
    if (found[i] == kNone) found[i] = build::zeros_like(p, wrt[i]);
  return found;
}

void gradient_by_parts(Gradient& g, const Op& op,
                       std::vector<ValueId> (*parts)(Program&, const Op&)) {
  Program& p = g.p;
  const auto first = static_cast<OpId>(p.ops().size());
  std::vector<ValueId> made = parts(p, op), outputs, cotangents, wrt;
  for (size_t j = 0; j < made.size(); ++j) {
    const ValueId dy = g.dy(static_cast<int>(j));
    if (dy != kNone) outputs.push_back(made[j]), cotangents.push_back(dy);
  }
  for (ValueId v : op.in)
    if (g.wanted(v) && !std::count(wrt.begin(), wrt.end(), v)) wrt.push_back(v);
  const std::vector<ValueId> found = pull_back(p, outputs, cotangents, wrt, first);
  for (size_t i = 0; i < wrt.size(); ++i)
    if (found[i] != kNone) g.add(wrt[i], found[i]);
}

Differentiated differentiate(Program& p, ValueId loss, const std::vector<ValueId>& wrt,
                             ValueId scale) {
  if (!p.type(loss).dims.empty() || !is_real(p.type(loss).dtype))
    p.fail_here("the loss must be a real scalar, not " + to_string(p.type(loss)) +
                "; take its mean");
  if (p.value(loss).batch() == Batch::sharded)
    p.fail_here("the loss is a number for each sample; return their mean, such as x:mean()");
  const bool sum = p.value(loss).batch() == Batch::partial;
  Differentiated result;
  {
    const Dependence on = dependence(p, wrt);
    result.needs_sums = LossTerms(p, loss, on).why_not_linear();
  }
  if (!result.needs_sums.empty()) loss = of_complete_sums(p, loss);
  const Dependence on = dependence(p, wrt);
  LossTerms terms(p, loss, on);
  p.set_phase(Phase::backward);
  ValueId one = p.constant(1, p.type(loss).dtype);
  const TermGradients h = gradients_of_terms(p, loss, wrt, on, terms, one,
                                             scale == kNone ? one : scale, Phase::update, sum);
  p.set_phase(Phase::forward);
  result.weight = h.weight;
  for (size_t i = 0; i < wrt.size(); ++i) result.parts.push_back({h.sums[i], h.others[i]});
  return result;
}

}  // namespace orrery
