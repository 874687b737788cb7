// SPDX-License-Identifier: Apache-2.0
#include "program/backward_pass.h"

#include <algorithm>

#include "base/error.h"
#include "program/build.h"
#include "program/eight_bits.h"
#include "program/join_products.h"

namespace orrery {
namespace {

// Whether the op lets no cotangent through, on purpose.
bool ends_cotangents(const Op& op) { return op.kind == "stop_gradient" || op.kind == "total"; }

}  // namespace

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
      if (is_any_real(p.type(v).dtype)) found[static_cast<size_t>(v)] = true;
  }
  return found;
}

Dependence dependence(const Program& p, const std::vector<ValueId>& wrt, size_t first) {
  Dependence on{dependents(p, wrt, first), std::vector<char>(p.values().size())};
  for (size_t i = first; i < p.ops().size(); ++i) {
    const Op& op = p.ops()[i];
    const auto& from =
        op.kind == "batch_sum" || op.kind == "batch_gather" ? on.depends : on.whole_batch;
    const bool reads = std::any_of(op.in.begin(), op.in.end(),
                                   [&](ValueId v) { return from[static_cast<size_t>(v)] != 0; });
    for (ValueId v : op.out)
      on.whole_batch[static_cast<size_t>(v)] =
          reads && on.depends[static_cast<size_t>(v)] && p.value(v).batch() == Batch::none;
  }
  return on;
}

BackwardPass::BackwardPass(Program& p, const std::vector<ValueId>& wrt, const Dependence& on,
                           size_t first)
    : Gradient(p), on_(on), first_(first) {
  for (ValueId v : wrt) is_wrt_[v] = true;
}

bool BackwardPass::has_whole_batch_term(ValueId loss) const {
  if (is_of_whole_batch(loss)) return true;
  const OpId maker = p.value(loss).producer;
  if (p.value(loss).batch() != Batch::mean || maker == kNone) return false;
  const Op& op = p.ops()[static_cast<size_t>(maker)];
  return op.kind != "batch_mean" && std::any_of(op.in.begin(), op.in.end(),
                                                [&](ValueId v) { return has_whole_batch_term(v); });
}

bool BackwardPass::wanted(ValueId x) {
  if (!depends(x)) return false;
  if (is_eight_bits(p.type(x).dtype))
    p.fail_here(fmt::format(
        "{} has no gradient in eight bits: give it one with orrery.with_gradient, or let none "
        "through, with :stop_gradient() before the cast",
        to_string(p.type(x))));
  const Batch batch = p.value(x).batch();
  if (pass_ == Pass::others && (is_of_whole_batch(x) || batch == Batch::partial)) return false;
  return !above_sums_ || batch == Batch::mean || (pass_ == Pass::sums && batch == Batch::partial) ||
         (pass_ == Pass::whole_batch && is_of_whole_batch(x));
}

// Rows that pad the last microbatch have a cotangent where a loss does not give them weight 0
// (orrery.grad): it may not reach the other rows of the microbatch.
ValueId BackwardPass::dy(int j) {
  const ValueId dy = get(op_->out[static_cast<size_t>(j)]);
  if (dy == kNone || pass_ != Pass::all || op_->kind != "microbatch_sum") return dy;
  return p.pointwise(ORR_FN_MUL, {dy, build::weight_like(p, dy)});
}

void BackwardPass::add(ValueId x, ValueId dx) {
  if (!wanted(x)) return;
  if (above_sums_ && p.value(x).batch() == Batch::partial)
    dx = terms_->of_sum(dx), mark_undivided(x);
  if (op_ && p.value(x).batch() == Batch::partial && is_undivided(op_->out[0])) mark_undivided(x);
  if (p.value(x).batch() == Batch::sharded && counts_padding())
    dx = p.pointwise(ORR_FN_MUL, {dx, build::weight_like(p, x)});
  if (is_wrt_.count(x)) {
    uses_[x].push_back(dx);
    if (!is_made_of_wrt(x)) return;
  }
  auto [at, fresh] = cotangent_.emplace(x, dx);
  if (!fresh) at->second = p.pointwise(ORR_FN_ADD, {at->second, dx});
}

void BackwardPass::run(size_t n_ops, Pass pass, LossTerms* terms) {
  terms_ = terms;
  const Site before = p.site();
  const OpId twin = p.twin();
  pass_ = pass;
  for (size_t i = n_ops; i-- > first_;)
    if (has_cotangent(p.ops()[i]) && !is_left_to_other_pass(p.ops()[i]))
      emit_gradient(static_cast<OpId>(i));
  op_ = nullptr;
  p.set_twin(twin);
  p.set_site(before);
}

std::vector<ValueId> BackwardPass::uses(ValueId x) {
  std::vector<ValueId> found = uses_[x];
  std::reverse(found.begin(), found.end());  // in the order of the uses in forward
  return join_products(p, found);
}

// Appends the gradient of an op.
void BackwardPass::emit_gradient(OpId i) {
  const Op op = p.ops()[static_cast<size_t>(i)];  // a copy: gradients append ops
  const OpDef& def = op_def(op.kind);
  if (!def.gradient) return refuse(op);
  op_ = &op;
  p.set_site(op.site);
  p.set_twin(i);
  if (pass_ == Pass::sums && is_mean(op) && terms_->is_quotient(op)) {
    if (op.kind != "batch_mean") mark_undivided(op.in[0]);
    add(op.in[0], terms_->of_divided(op, get(op.out[0])));
    return;
  }
  above_sums_ = is_mean(op) && (pass_ == Pass::sums || pass_ == Pass::whole_batch);
  def.gradient(*this, op);
  above_sums_ = false;
}

bool BackwardPass::has_cotangent(const Op& op) const {
  return std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) { return get(v) != kNone; });
}

// The cotangent of v; kNone if it has none.
ValueId BackwardPass::get(ValueId v) const {
  auto at = cotangent_.find(v);
  return at == cotangent_.end() ? kNone : at->second;
}

// Whether the current op makes a sum over the batch that samples read, or that no mean divides.
// Rows that pad the last microbatch are not in that sum, so their cotangent must be made 0. Other
// sums belong to means, in which these rows have weight 0 anyway.
bool BackwardPass::counts_padding() const {
  return op_ && std::any_of(op_->out.begin(), op_->out.end(),
                            [&](ValueId v) { return p.is_completed(v) || is_undivided(v); });
}

bool BackwardPass::depends(ValueId x) const {
  return static_cast<size_t>(x) < on_.depends.size() && on_.depends[static_cast<size_t>(x)];
}

bool BackwardPass::is_of_whole_batch(ValueId x) const {
  return static_cast<size_t>(x) < on_.whole_batch.size() && on_.whole_batch[static_cast<size_t>(x)];
}

// Whether another pass handles the cotangents of the op's results.
bool BackwardPass::is_left_to_other_pass(const Op& op) const {
  if (pass_ != Pass::others && pass_ != Pass::whole_batch) return false;
  return (is_mean(op) && terms_->is_quotient(op)) ||
         (pass_ == Pass::others && is_of_whole_batch(op.out[0]));
}

// Whether x, one of `wrt`, is computed from others of them, so that its cotangent must be passed
// on.
bool BackwardPass::is_made_of_wrt(ValueId x) const {
  const OpId maker = p.value(x).producer;
  if (maker == kNone || static_cast<size_t>(maker) < first_) return false;
  const Op& op = p.ops()[static_cast<size_t>(maker)];
  return !ends_cotangents(op) &&
         std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return depends(v); });
}

void BackwardPass::refuse(const Op& op) const {
  for (ValueId v : op.in)
    if (depends(v))
      fail(ORR_FAILED, "{}{} has no derivative: let none through, with :stop_gradient()",
           op.site.prefix(), op.kind);
}

}  // namespace orrery
