// SPDX-License-Identifier: Apache-2.0
#include "program/autodiff.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/build.h"
#include "program/join_products.h"
#include "program/relate.h"

namespace orrery {
namespace {

// The weight of a mean before it was repeated to the dims of the value.
ValueId unrepeated(const Program& p, ValueId weight) {
  for (OpId maker = p.value(weight).producer; maker != kNone; maker = p.value(weight).producer) {
    const Op& op = p.ops()[static_cast<size_t>(maker)];
    if (op.kind != "pointwise" || op.expr.instrs.back().fn != ORR_FN_INPUT) break;
    weight = op.in[0];
  }
  return weight;
}

// The sum of weights that a weight is, which means of another dtype read by a cast.
ValueId uncast(const Program& p, ValueId weight) {
  const OpId maker = p.value(weight).producer;
  if (maker == kNone) return weight;
  const Op& op = p.ops()[static_cast<size_t>(maker)];
  const bool widens =
      op.kind == "pointwise" && op.expr.instrs.size() == 2 &&
      op.expr.instrs.back().fn == ORR_FN_CAST &&
      orr_dtype_bytes(p.type(weight).dtype) > orr_dtype_bytes(p.type(op.in[0]).dtype);
  return widens ? unrepeated(p, op.in[0]) : weight;
}

// Which terms of a loss a pass differentiates. all: everything, as it is written. means: its means,
// whose gradients are sums over the batch. whole: terms that are made of the whole batch in another
// way (Program::completed, gathered rows). others: the rest, with the former held fixed.
enum class Pass { all, means, whole, others };

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
      if (is_real(p.type(v).dtype)) found[static_cast<size_t>(v)] = true;
  }
  return found;
}

// A backward pass. The cotangents of a value's uses are added, but those of the values `wrt` are
// kept one for each use.
class Reverse : public Gradient {
 public:
  Reverse(Program& p, const std::vector<ValueId>& wrt, size_t first = 0)
      : Gradient(p), needed_(dependents(p, wrt, first)), first_(first), whole_(p.values().size()) {
    for (ValueId v : wrt) is_wrt_[v] = true;
    for (size_t i = first; i < p.ops().size(); ++i) mark_whole(p.ops()[i]);
  }

  // Whether the loss has a term that is made of the whole batch, other than a mean over the
  // samples.
  bool has_whole(ValueId loss) const {
    if (is_whole(loss)) return true;
    const OpId maker = p.value(loss).producer;
    if (p.value(loss).batch != Batch::mean || maker == kNone) return false;
    const Op& op = p.ops()[static_cast<size_t>(maker)];
    return op.kind != "batch_mean" &&
           std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return has_whole(v); });
  }

  bool wanted(ValueId x) override {
    if (!depends(x) || (pass_ == Pass::others && is_whole(x))) return false;
    return !above_means_ || p.value(x).batch == Batch::mean ||
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
    if (pass_ == Pass::whole && p.value(dx).batch == Batch::mean)
      fail(ORR_FAILED,
           "{}the loss multiplies a mean over its samples by what is made of the whole batch: "
           "multiply each sample before the mean",
           p.site().prefix());
    if (p.value(dx).batch == Batch::sharded && sums_for_samples())
      dx = p.pointwise(ORR_FN_MUL, {dx, build::weight_like(p, dx)});
    if (is_wrt_.count(x)) {
      uses_[x].push_back(dx);
      if (!is_made_of_wrt(x)) return;
    }
    auto [at, fresh] = cotangent_.emplace(x, dx);
    if (!fresh) at->second = p.pointwise(ORR_FN_ADD, {at->second, dx});
  }

  void run(size_t n_ops, Pass pass) {
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
      const bool of_means =
          p.value(op.out[0]).batch == Batch::mean && op.kind != "batch_mean" && pass != Pass::all;
      if (of_means) check_terms(op);
      above_means_ = of_means && pass != Pass::others;
      if (op.kind == "batch_mean") weights_.push_back({unrepeated(p, op.in[1]), op.site});
      op_ = &op;
      p.set_site(op.site);
      p.set_twin(static_cast<OpId>(i));
      def.gradient(*this, op);
    }
    above_means_ = false, op_ = nullptr;
    p.set_twin(twin);
    p.set_site(before);
  }

  std::vector<ValueId> uses(ValueId x) {
    std::vector<ValueId> found = uses_[x];
    std::reverse(found.begin(), found.end());  // in the order of the uses in forward
    return join_products(p, found);
  }

  const std::vector<std::pair<ValueId, Site>>& weights() const { return weights_; }

 private:
  ValueId get(ValueId v) const {
    auto at = cotangent_.find(v);
    return at == cotangent_.end() ? kNone : at->second;
  }

  // Whether the current op makes a sum over the batch that samples read. Rows that pad the last
  // microbatch are not in that sum, so their cotangent must be made 0. Other sums belong to means,
  // in which these rows have weight 0 anyway.
  bool sums_for_samples() const {
    return op_ && std::any_of(op_->out.begin(), op_->out.end(),
                              [&](ValueId v) { return p.is_completed(v); });
  }

  bool depends(ValueId x) const {
    return static_cast<size_t>(x) < needed_.size() && needed_[static_cast<size_t>(x)];
  }

  bool is_whole(ValueId x) const {
    return static_cast<size_t>(x) < whole_.size() && whole_[static_cast<size_t>(x)];
  }

  void mark_whole(const Op& op) {
    const bool completes = op.kind == "batch_sum" || op.kind == "batch_gather";
    const bool whole = std::any_of(op.in.begin(), op.in.end(),
                                   [&](ValueId v) { return completes ? depends(v) : is_whole(v); });
    for (ValueId v : op.out)
      whole_[static_cast<size_t>(v)] = whole && depends(v) && p.value(v).batch == Batch::none;
  }

  // Whether another pass handles the cotangents of the op's results.
  bool is_left_to_other_pass(const Op& op) const {
    if (op.kind == "batch_mean") return pass_ == Pass::others || pass_ == Pass::whole;
    return pass_ == Pass::others && is_whole(op.out[0]);
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

  void check_terms(const Op& op) const {
    for (ValueId v : op.in)
      if (const std::string why = depends(v) ? blocks_gradient(p, op, v) : ""; !why.empty())
        fail(ORR_FAILED, "{}{}", op.site.prefix(), why);
  }

  std::vector<char> needed_;
  size_t first_;             // the op that the forward part begins with
  std::vector<char> whole_;  // by value: one value for all samples, computed from them
  std::map<ValueId, bool> is_wrt_;
  std::map<ValueId, ValueId> cotangent_;
  std::map<ValueId, std::vector<ValueId>> uses_;
  std::vector<std::pair<ValueId, Site>> weights_;
  const Op* op_ = nullptr;
  Pass pass_ = Pass::all;
  bool above_means_ = false;  // the current op lies between the loss and its means
};

ValueId sum(Program& p, const std::vector<ValueId>& terms) {
  ValueId total = kNone;
  for (ValueId v : terms) total = total == kNone ? v : p.pointwise(ORR_FN_ADD, {total, v});
  return total;
}

// The gradients of a loss of means and other terms, for each of `wrt`.
struct TermGradients {
  std::vector<std::vector<ValueId>> means;  // by use, not yet divided by `weight`
  std::vector<ValueId> others;              // kNone: there is none
  ValueId weight = kNone;
};

ValueId one_weight(const Program& p, const std::vector<std::pair<ValueId, Site>>& weights) {
  ValueId one = kNone;
  for (auto& [weight, site] : weights) {
    if (one != kNone && uncast(p, weight) != uncast(p, one))
      fail(ORR_FAILED,
           "{}this mean has other weights than the loss's first one; a loss divides by "
           "one summed weight: give all terms the same weights, or return the term as an auxiliary "
           "output",
           site.prefix());
    if (one == kNone) one = weight;
  }
  return one;
}

// Computes them. The loss's cotangent is `scale` for the gradients through means, `cotangent` for
// the others, which are computed in phase `late` with the means held constant.
TermGradients gradients_of_terms(Program& p, ValueId loss, const std::vector<ValueId>& wrt,
                                 ValueId cotangent, ValueId scale, Phase late) {
  const size_t n = p.ops().size();
  Reverse batch(p, wrt), penalty(p, wrt), whole(p, wrt);
  batch.add(loss, scale);
  penalty.add(loss, cotangent);
  if (p.value(loss).batch == Batch::mean) batch.run(n, Pass::means);
  TermGradients found;
  found.weight = one_weight(p, batch.weights());
  if (whole.has_whole(loss)) {  // the term counts as a mean of itself over the samples
    if (found.weight == kNone) found.weight = build::total_weight(p, p.type(loss).dtype);
    const ValueId sum = p.cast(found.weight, p.type(loss).dtype);
    whole.add(loss, p.pointwise(ORR_FN_MUL, {sum, scale}));
    whole.run(n, Pass::whole);
  }
  p.set_phase(late);
  penalty.run(n, Pass::others);
  for (ValueId v : wrt) {
    found.means.emplace_back();
    for (Reverse* pass : {&batch, &whole})
      for (ValueId use : pass->uses(v))
        if (p.value(use).batch != Batch::none) found.means.back().push_back(use);
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
    if (p.value(wrt[i]).batch != Batch::none)
      p.fail_here(fmt::format(
          "grad: value {} {} is one of {}, and the derivative of a mean over the batch is divided "
          "by the weight of all samples, which is known only after all microbatches; differentiate "
          "the samples' sum, with :sum() in place of :mean()",
          i + 1, to_string(p.type(wrt[i])),
          p.value(wrt[i]).batch == Batch::sharded ? "each sample" : "the whole batch"));
  const TermGradients h = gradients_of_terms(p, y, wrt, cotangent, cotangent, p.phase());
  std::vector<ValueId> found;
  for (size_t i = 0; i < wrt.size(); ++i) {
    ValueId mean = mean_of(p, h.means[i], h.weight), other = h.others[i];
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
  Reverse reverse(p, wrt, static_cast<size_t>(first));
  for (size_t i = 0; i < outputs.size(); ++i) reverse.add(outputs[i], cotangents[i]);
  reverse.run(n, Pass::all);
  std::vector<ValueId> found;
  for (ValueId v : wrt) found.push_back(sum(p, reverse.uses(v)));
  return found;
}

std::vector<ValueId> derivatives(Program& p, ValueId y, ValueId cotangent,
                                 const std::vector<ValueId>& wrt) {
  for (size_t i = 0; i < wrt.size(); ++i)
    if (!dependents(p, {wrt[i]}, 0)[static_cast<size_t>(y)])
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
  if (p.value(loss).batch == Batch::sharded || p.value(loss).batch == Batch::partial)
    p.fail_here("the loss is a sum over the batch; return a mean, such as x:mean()");
  p.set_phase(Phase::backward);
  ValueId one = p.constant(1, p.type(loss).dtype);
  const TermGradients h =
      gradients_of_terms(p, loss, wrt, one, scale == kNone ? one : scale, Phase::update);
  p.set_phase(Phase::forward);
  Differentiated result;
  result.weight = h.weight;
  for (size_t i = 0; i < wrt.size(); ++i) result.parts.push_back({h.means[i], h.others[i]});
  return result;
}

}  // namespace orrery
