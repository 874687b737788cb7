// SPDX-License-Identifier: Apache-2.0
#include "program/autodiff.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "program/build.h"
#include "program/op.h"
#include "program/relate.h"

namespace orrery {
namespace {

// The weight of a mean that has dims of its own is repeated to them.
ValueId unrepeated(const Program& p, ValueId weight) {
  for (OpId maker = p.value(weight).producer; maker != kNone; maker = p.value(weight).producer) {
    const Op& op = p.ops()[static_cast<size_t>(maker)];
    if (op.kind != "pointwise" || op.expr.instrs.back().fn != ORR_FN_INPUT) break;
    weight = op.in[0];
  }
  return weight;
}

// Which cotangents a pass takes from a loss of means and other terms: all of them as they are
// written, those of its means as sums over the batch, those of terms that are made of the whole
// batch otherwise (Program::completed, gathered rows), or those of the rest with means held fixed.
enum class Pass { all, means, whole, others };

// Cotangents of activations are summed where they meet; those of leaves (wrt) stay apart by use.
class Reverse : public Gradient {
 public:
  Reverse(Program& p, const std::vector<ValueId>& wrt)
      : Gradient(p), needed_(p.values().size()), whole_(p.values().size()) {
    for (ValueId v : wrt) needed_[static_cast<size_t>(v)] = leaf_[v] = true;
    for (const Op& op : p.ops()) {
      if (op.kind == "stop_gradient" || op.kind == "total") continue;
      bool any = std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return depends(v); });
      for (ValueId v : op.out) needed_[static_cast<size_t>(v)] = any && is_real(p.type(v).dtype);
      const bool completes = op.kind == "batch_sum" || op.kind == "batch_gather";
      bool whole = std::any_of(op.in.begin(), op.in.end(),
                               [&](ValueId v) { return completes ? depends(v) : is_whole(v); });
      for (ValueId v : op.out)
        whole_[static_cast<size_t>(v)] = whole && depends(v) && p.value(v).batch == Batch::none;
    }
  }

  // Whether the loss has a term that is made of the whole batch and is no mean over its samples.
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

  ValueId dy(int j) override { return get(op_->out[static_cast<size_t>(j)]); }

  void add(ValueId x, ValueId dx) override {
    if (!wanted(x)) return;
    if (pass_ == Pass::whole && p.value(dx).batch == Batch::mean)
      fail(ORR_FAILED,
           "{}the loss multiplies a mean over its samples by what is made of the whole batch: "
           "multiply each sample before the mean",
           p.site().prefix());
    if (p.value(dx).batch == Batch::sharded && sums_for_samples())
      dx = p.pointwise(ORR_FN_MUL, {dx, build::weight_like(p, dx)});
    if (leaf_.count(x)) {
      uses_[x].push_back(dx);
      return;
    }
    auto [at, fresh] = cotangent_.emplace(x, dx);
    if (!fresh) at->second = p.pointwise(ORR_FN_ADD, {at->second, dx});
  }

  void run(size_t n_ops, Pass pass) {
    Site before = p.site();
    pass_ = pass;
    for (size_t i = n_ops; i-- > 0;) {
      Op op = p.ops()[i];  // a copy: gradients append ops
      bool reached =
          std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) { return get(v) != kNone; });
      if (!reached || leaves_out(op)) continue;
      const OpDef& def = op_def(op.kind);
      if (!def.gradient) continue;
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
    p.set_twin(kNone);
    p.set_site(before);
  }

  std::vector<ValueId> uses(ValueId x) {
    std::vector<ValueId> found = uses_[x];
    std::reverse(found.begin(), found.end());  // forward order of the uses
    return found;
  }

  const std::vector<std::pair<ValueId, Site>>& weights() const { return weights_; }

 private:
  ValueId get(ValueId v) const {
    auto at = cotangent_.find(v);
    return at == cotangent_.end() ? kNone : at->second;
  }

  // Whether the op at hand makes a sum over the batch that samples read. What fills the last
  // microbatch up is not in that sum, so it has no cotangent; other sums are of means, which weigh
  // it by 0.
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

  // Whether cotangents of what the op makes are another pass's.
  bool leaves_out(const Op& op) const {
    if (op.kind == "batch_mean") return pass_ == Pass::others || pass_ == Pass::whole;
    return pass_ == Pass::others && is_whole(op.out[0]);
  }

  void check_terms(const Op& op) const {
    for (ValueId v : op.in)
      if (const std::string why = depends(v) ? blocks_gradient(p, op, v) : ""; !why.empty())
        fail(ORR_FAILED, "{}{}", op.site.prefix(), why);
  }

  std::vector<char> needed_;
  std::vector<char> whole_;  // one for all samples, but made of them
  std::map<ValueId, bool> leaf_;
  std::map<ValueId, ValueId> cotangent_;
  std::map<ValueId, std::vector<ValueId>> uses_;
  std::vector<std::pair<ValueId, Site>> weights_;
  const Op* op_ = nullptr;
  Pass pass_ = Pass::all;
  bool above_means_ = false;  // the op at hand lies between the loss and its means
};

ValueId sum(Program& p, const std::vector<ValueId>& terms) {
  ValueId total = kNone;
  for (ValueId v : terms) total = total == kNone ? v : p.pointwise(ORR_FN_ADD, {total, v});
  return total;
}

}  // namespace

std::vector<ValueId> pull_back(Program& p, const std::vector<ValueId>& outputs,
                               const std::vector<ValueId>& cotangents,
                               const std::vector<ValueId>& wrt) {
  size_t n = p.ops().size();
  Reverse reverse(p, wrt);
  for (size_t i = 0; i < outputs.size(); ++i) reverse.add(outputs[i], cotangents[i]);
  reverse.run(n, Pass::all);
  std::vector<ValueId> found;
  for (ValueId v : wrt) found.push_back(sum(p, reverse.uses(v)));
  return found;
}

Differentiated differentiate(Program& p, ValueId loss, const std::vector<ValueId>& wrt,
                             ValueId scale) {
  if (!p.type(loss).dims.empty() || !is_real(p.type(loss).dtype))
    p.fail_here("the loss must be a real scalar, not " + to_string(p.type(loss)) +
                "; take its mean");
  if (p.value(loss).batch == Batch::sharded || p.value(loss).batch == Batch::partial)
    p.fail_here("the loss is a sum over the batch; return a mean, such as x:mean()");
  size_t n = p.ops().size();
  Differentiated result;
  p.set_phase(Phase::backward);
  ValueId one = p.constant(1, p.type(loss).dtype);
  Reverse batch(p, wrt);
  batch.add(loss, scale == kNone ? one : scale);
  Reverse penalty(p, wrt);
  penalty.add(loss, one);
  Reverse whole(p, wrt);
  bool is_mean = p.value(loss).batch == Batch::mean;
  if (is_mean) batch.run(n, Pass::means);
  for (auto& [weight, site] : batch.weights()) {
    if (result.weight != kNone && weight != result.weight)
      fail(ORR_FAILED,
           "{}this mean has other weights than the loss's first one; a loss divides by "
           "one summed weight: give all terms the same weights, or return the term as an auxiliary "
           "output",
           site.prefix());
    result.weight = weight;
  }
  if (whole.has_whole(loss)) {  // as the mean over the samples of what each of them is given
    if (result.weight == kNone) result.weight = build::total_weight(p, p.type(loss).dtype);
    const ValueId sum = p.cast(result.weight, p.type(loss).dtype);
    whole.add(loss, scale == kNone ? sum : p.pointwise(ORR_FN_MUL, {sum, scale}));
    whole.run(n, Pass::whole);
  }
  p.set_phase(Phase::update);
  penalty.run(n, Pass::others);
  for (ValueId v : wrt) {
    GradientParts parts;
    for (Reverse* pass : {&batch, &whole})
      for (ValueId use : pass->uses(v))
        if (p.value(use).batch == Batch::partial) parts.partial.push_back(use);
    std::vector<ValueId> rest = penalty.uses(v);
    parts.regular = sum(p, rest);
    result.parts.push_back(parts);
  }
  p.set_phase(Phase::forward);
  return result;
}

}  // namespace orrery
