// SPDX-License-Identifier: Apache-2.0
#include "program/autodiff.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "program/build.h"
#include "program/eight_bits.h"
#include "program/join_products.h"
#include "program/loss_terms.h"
#include "program/own_rows.h"

namespace orrery {
namespace {

// Which terms of a loss a pass differentiates. all: everything, as it is written. sums: the sums
// over the batch that it is linear in, and their quotients (LossTerms). whole: terms that need
// the whole batch otherwise, by Program::completed or gathered rows. others: the terms left over;
// what `whole` differentiates is a constant to them.
enum class Pass { all, sums, whole, others };

bool is_sum(const Program& p, ValueId v) {
  return p.value(v).batch() == Batch::partial || p.value(v).batch() == Batch::mean;
}

// Whether cotangents end here on purpose.
bool ends_cotangents(const Op& op) { return op.kind == "stop_gradient" || op.kind == "total"; }

// By value: whether it is one of `wrt` or depends on one, through the ops from `first` on.
std::vector<char> dependents(const Program& p, const std::vector<ValueId>& wrt, size_t first) {
  std::vector<char> found(p.values().size());
  for (ValueId v : wrt) found[static_cast<size_t>(v)] = true;
  for (size_t i = first; i < p.ops().size(); ++i) {
    const Op& op = p.ops()[i];
    if (ends_cotangents(op) || std::none_of(op.in.begin(), op.in.end(), [&](ValueId v) {
          return found[static_cast<size_t>(v)];
        }))
      continue;
    for (ValueId v : op.out)
      if (is_number(p.type(v).dtype)) found[static_cast<size_t>(v)] = true;
  }
  return found;
}

Dependence dependence(const Program& p, const std::vector<ValueId>& wrt, size_t first = 0) {
  Dependence on{dependents(p, wrt, first), std::vector<char>(p.values().size())};
  for (size_t i = first; i < p.ops().size(); ++i) {
    const Op& op = p.ops()[i];
    const auto& from = op.kind == "batch_sum" || op.kind == "batch_gather" ? on.depends : on.whole;
    const bool whole = std::any_of(op.in.begin(), op.in.end(),
                                   [&](ValueId v) { return from[static_cast<size_t>(v)] != 0; });
    for (ValueId v : op.out)
      on.whole[static_cast<size_t>(v)] =
          whole && on.depends[static_cast<size_t>(v)] && p.value(v).batch() == Batch::none;
  }
  return on;
}

// A backward pass. The cotangents of a value's uses are added, but those of the values `wrt` are
// kept one for each use.
class Reverse : public Gradient {
 public:
  Reverse(Program& p, const std::vector<ValueId>& wrt, const Dependence& on, size_t first = 0)
      : Gradient(p), on_(on), first_(first) {
    for (ValueId v : wrt) is_wrt_[v] = true;
  }

  // Whether the loss has a term that is made of the whole batch, other than a mean over the
  // samples.
  bool has_whole(ValueId loss) const {
    if (is_whole(loss)) return true;
    const OpId maker = p.value(loss).producer;
    if (p.value(loss).batch() != Batch::mean || maker == kNone) return false;
    const Op& op = p.ops()[static_cast<size_t>(maker)];
    return op.kind != "batch_mean" &&
           std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return has_whole(v); });
  }

  bool wanted(ValueId x) override {
    if (!depends(x)) return false;
    if (is_eight_bits(p.type(x).dtype))
      p.fail_here(fmt::format(
          "{} has no gradient in eight bits: give it one with orrery.with_gradient, or let none "
          "through, with :stop_gradient() before the cast",
          to_string(p.type(x))));
    const Batch batch = p.value(x).batch();
    if (pass_ == Pass::others && (is_whole(x) || batch == Batch::partial)) return false;
    return !above_sums_ || batch == Batch::mean ||
           (pass_ == Pass::sums && batch == Batch::partial) ||
           (pass_ == Pass::whole && is_whole(x));
  }

  // Rows that pad the last microbatch have a cotangent where a loss does not give them weight 0
  // (orrery.grad): it may not reach the other rows of the microbatch.
  ValueId dy(int j) override {
    const ValueId dy = get(op_->out[static_cast<size_t>(j)]);
    if (dy == kNone || pass_ != Pass::all || op_->kind != "microbatch_sum") return dy;
    return p.pointwise(ORR_FN_MUL, {dy, build::weight_like(p, dy)});
  }

  void add(ValueId x, ValueId dx) override {
    if (!wanted(x)) return;
    if (above_sums_ && p.value(x).batch() == Batch::partial) dx = terms_->of_sum(dx), mark_bare(x);
    if (op_ && p.value(x).batch() == Batch::partial && is_bare(op_->out[0])) mark_bare(x);
    if (p.value(x).batch() == Batch::sharded && counts_padding())
      dx = p.pointwise(ORR_FN_MUL, {dx, build::weight_like(p, x)});
    if (is_wrt_.count(x)) {
      uses_[x].push_back(dx);
      if (!is_made_of_wrt(x)) return;
    }
    auto [at, fresh] = cotangent_.emplace(x, dx);
    if (!fresh) at->second = p.pointwise(ORR_FN_ADD, {at->second, dx});
  }

  // `terms`: those of the loss, for Pass::sums.
  void run(size_t n_ops, Pass pass, LossTerms* terms = nullptr) {
    terms_ = terms;
    const Site before = p.site();
    const OpId twin = p.twin();
    pass_ = pass;
    for (size_t i = n_ops; i-- > first_;) {
      const std::vector<ValueId>& out = p.ops()[i].out;
      if (std::all_of(out.begin(), out.end(), [&](ValueId v) { return get(v) == kNone; }) ||
          is_left_to_other_pass(p.ops()[i]))
        continue;
      const Op op = p.ops()[i];  // a copy: gradients append ops
      const OpDef& def = op_def(op.kind);
      if (!def.gradient) {
        refuse(op);
        continue;
      }
      op_ = &op;
      p.set_site(op.site);
      p.set_twin(static_cast<OpId>(i));
      if (pass == Pass::sums && is_mean(op) && terms->is_quotient(op)) {
        if (op.kind != "batch_mean") mark_bare(op.in[0]);
        add(op.in[0], terms->of_divided(op, get(op.out[0])));
        continue;
      }
      above_sums_ = is_mean(op) && (pass == Pass::sums || pass == Pass::whole);
      def.gradient(*this, op);
      above_sums_ = false;
    }
    op_ = nullptr;
    p.set_twin(twin);
    p.set_site(before);
  }

  // A bare sum over the batch is one that no batch_mean divides.
  void mark_bare(ValueId sum) { bare_.insert(sum); }

  std::vector<ValueId> uses(ValueId x) {
    std::vector<ValueId> found = uses_[x];
    std::reverse(found.begin(), found.end());  // in the order of the uses in forward
    return join_products(p, found);
  }

 private:
  ValueId get(ValueId v) const {
    auto at = cotangent_.find(v);
    return at == cotangent_.end() ? kNone : at->second;
  }

  // Whether the current op makes a sum over the batch that samples read, or that the script wrote
  // itself. Rows that pad the last microbatch are not in that sum, so their cotangent must be made
  // 0. Other sums belong to means, in which these rows have weight 0 anyway.
  bool counts_padding() const {
    return op_ && std::any_of(op_->out.begin(), op_->out.end(),
                              [&](ValueId v) { return p.is_completed(v) || is_bare(v); });
  }

  bool is_bare(ValueId v) const { return bare_.count(v) > 0; }

  bool is_mean(const Op& op) const { return p.value(op.out[0]).batch() == Batch::mean; }

  bool depends(ValueId x) const {
    return static_cast<size_t>(x) < on_.depends.size() && on_.depends[static_cast<size_t>(x)];
  }

  bool is_whole(ValueId x) const {
    return static_cast<size_t>(x) < on_.whole.size() && on_.whole[static_cast<size_t>(x)];
  }

  // Whether another pass handles the cotangents of the op's results.
  bool is_left_to_other_pass(const Op& op) const {
    if (pass_ != Pass::others && pass_ != Pass::whole) return false;
    return (is_mean(op) && terms_->is_quotient(op)) ||
           (pass_ == Pass::others && is_whole(op.out[0]));
  }

  // Whether x, one of `wrt`, is computed from others of them, so that its cotangent must be passed
  // on.
  bool is_made_of_wrt(ValueId x) const {
    const OpId maker = p.value(x).producer;
    if (maker == kNone || static_cast<size_t>(maker) < first_) return false;
    const Op& op = p.ops()[static_cast<size_t>(maker)];
    return !ends_cotangents(op) &&
           std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return depends(v); });
  }

  void refuse(const Op& op) const {
    for (ValueId v : op.in)
      if (depends(v))
        fail(ORR_FAILED, "{}{} has no derivative: let none through, with :stop_gradient()",
             op.site.prefix(), op.kind);
  }

  const Dependence& on_;
  LossTerms* terms_ = nullptr;
  size_t first_;  // the op that the forward part begins with
  std::set<ValueId> bare_;
  std::map<ValueId, bool> is_wrt_;
  std::map<ValueId, ValueId> cotangent_;
  std::map<ValueId, std::vector<ValueId>> uses_;
  const Op* op_ = nullptr;
  Pass pass_ = Pass::all;
  bool above_sums_ = false;  // the current op lies between the loss and its sums
};

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

// Computes them for a loss that is linear in its sums. The loss's cotangent is `scale` for the
// gradients of sums, `cotangent` for the others, which are computed in phase `late` with the sums
// held constant. A term of the whole batch counts as a mean of itself over the samples; with
// `undivided` its gradient is not to be divided.
TermGradients gradients_of_terms(Program& p, ValueId loss, const std::vector<ValueId>& wrt,
                                 const Dependence& on, LossTerms& terms, ValueId cotangent,
                                 ValueId scale, Phase late, bool undivided = false) {
  const size_t n = p.ops().size();
  Reverse batch(p, wrt, on), penalty(p, wrt, on), whole(p, wrt, on);
  if (p.value(loss).batch() != Batch::partial) penalty.add(loss, cotangent);
  TermGradients found;
  found.weight = terms.weight();
  if (is_sum(p, loss)) {
    if (p.value(loss).batch() == Batch::partial) batch.mark_bare(loss);
    batch.add(loss, scale);
    batch.run(n, Pass::sums, &terms);
  }
  if (whole.has_whole(loss)) {
    if (found.weight == kNone && !undivided)
      found.weight = build::total_weight(p, p.type(loss).dtype);
    whole.add(loss,
              found.weight == kNone
                  ? scale
                  : p.pointwise(ORR_FN_MUL, {p.cast(found.weight, p.type(loss).dtype), scale}));
    whole.run(n, Pass::whole, &terms);
  }
  p.set_phase(late);
  penalty.run(n, Pass::others, &terms);
  for (ValueId v : wrt) {
    found.sums.emplace_back();
    for (Reverse* pass : {&batch, &whole})
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

std::vector<ValueId> derivatives_of_mean(Program& p, ValueId y, ValueId cotangent,
                                         const std::vector<ValueId>& wrt) {
  for (size_t i = 0; i < wrt.size(); ++i)
    if (p.value(wrt[i]).batch() != Batch::none)
      p.fail_here(fmt::format(
          "grad: value {} {} is one of {}, and the derivative of a mean over the batch is divided "
          "by the weight of all samples, which is known only after all microbatches; differentiate "
          "the samples' sum, with :sum() in place of :mean()",
          i + 1, to_string(p.type(wrt[i])),
          p.value(wrt[i]).batch() == Batch::sharded ? "each sample" : "the whole batch"));
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
  Reverse reverse(p, wrt, on, static_cast<size_t>(first));
  for (size_t i = 0; i < outputs.size(); ++i) reverse.add(outputs[i], cotangents[i]);
  reverse.run(n, Pass::all);
  std::vector<ValueId> found;
  for (ValueId v : wrt) found.push_back(sum(p, reverse.uses(v)));
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
