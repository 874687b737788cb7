// SPDX-License-Identifier: Apache-2.0
#include "program/loss_terms.h"

#include <algorithm>

#include "program/build.h"
#include "program/loss_weight.h"
#include "program/op.h"
#include "program/relate.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

bool is_division(const Op& op) {
  return op.kind == "pointwise" && op.in.size() == 2 && op.expr.instrs.size() == 3 &&
         op.expr.instrs.back().fn == ORR_FN_DIV && op.expr.instrs[0].a == 0;
}

// Whether the gradient of one input has another one as a factor.
bool multiplies(const Op& op) {
  if (op.kind != "pointwise") return op.in.size() > 1;
  const int32_t fn = op.expr.instrs.back().fn;
  return fn == ORR_FN_MUL || fn == ORR_FN_DIV;
}

bool reads_samples(const Program& p, const Op& op) {
  return std::any_of(op.in.begin(), op.in.end(),
                     [&](ValueId v) { return p.value(v).batch() == Batch::sharded; });
}

bool is_sum(const Program& p, ValueId v) {
  return p.value(v).batch() == Batch::partial || p.value(v).batch() == Batch::mean;
}

}  // namespace

LossTerms::LossTerms(Program& p, ValueId loss, const Dependence& on)
    : p_(p), on_(on), fields_(p), why_(check(loss)) {
  if (why_.empty()) weight_ = find_weight(loss);
}

const Op* LossTerms::maker_of(ValueId v) const {
  const OpId maker = p_.value(v).producer;
  return maker == kNone ? nullptr : &p_.ops()[static_cast<size_t>(maker)];
}

bool LossTerms::is_quotient(const Op& op) const {
  if (op.kind == "batch_mean") return !depends(op.in[1]);
  return is_division(op) && p_.value(op.in[0]).batch() == Batch::partial && depends(op.in[0]) &&
         !depends(op.in[1]) && p_.type(op.in[0]) == p_.type(op.out[0]);
}

// Why v, a part of the loss, is not linear in its sums; "" if it is.
std::string LossTerms::check(ValueId v) const {
  const Op* op = maker_of(v);
  if (!op || !depends(v) || !is_sum(p_, v) || reads_samples(p_, *op)) return "";
  if (!is_quotient(*op))
    if (const std::string why = check(*op); !why.empty()) return op->site.prefix() + why;
  for (ValueId x : op->in)
    if (std::string why = check(x); !why.empty()) return why;
  return "";
}

std::string LossTerms::check(const Op& op) const {
  std::vector<char> varies;
  for (ValueId x : op.in) varies.push_back(depends(x) && is_sum(p_, x));
  const bool whole =
      std::any_of(op.in.begin(), op.in.end(), [&](ValueId x) { return is_of_whole_batch(x); });
  const bool none = std::none_of(varies.begin(), varies.end(), [](char v) { return v != 0; });
  if ((none || is_linear_in(p_, op, varies)) && !(whole && multiplies(op))) return "";
  return fmt::format("'{}' makes a nonlinear function of sums over the batch here", name_of(op));
}

// The weight of the last quotient by a single number that backward comes to first. Without one it
// is the number of samples; but the gradients of a mere sum are not divided.
ValueId LossTerms::find_weight(ValueId loss) const {
  if (p_.value(loss).batch() == Batch::partial) return kNone;
  const std::vector<bool> behind =
      ops_behind(p_, {loss}, [&](ValueId v) { return !is_sum(p_, v); });
  bool sums = false;
  for (size_t i = behind.size(); i-- > 0;) {
    const Op& op = p_.ops()[i];
    if (!behind[i] || op.out.empty() || p_.value(op.out[0]).batch() != Batch::mean) continue;
    for (ValueId v : op.in) sums |= depends(v) && p_.value(v).batch() == Batch::partial;
    if (!depends(op.out[0]) || !is_quotient(op)) continue;
    const ValueId weight = unrepeated(p_, op.in[1]);
    if (p_.type(weight).dims.empty() && is_sum(p_, weight)) return weight;
  }
  return sums ? build::total_weight(p_, p_.type(loss).dtype) : ValueId{kNone};
}

// A value that does not depend on what is trained, known before the first microbatch; else a sum
// that ranks complete before backward begins.
ValueId LossTerms::early(ValueId v) {
  const ValueId found = fields_.of(v);
  return found == kNone ? p_.completed(v) : found;
}

ValueId LossTerms::of_divided(const Op& quotient, ValueId dy) {
  const ValueId by = unrepeated(p_, quotient.in[1]);
  dy = early(dy);
  if (is_same_weight(p_, by, weight_)) return dy;
  const ValueId ratio =
      p_.pointwise(ORR_FN_DIV, {p_.cast(early(weight_), p_.type(by).dtype), early(by)});
  return p_.pointwise(ORR_FN_MUL, {dy, p_.cast(ratio, p_.type(dy).dtype)});
}

ValueId LossTerms::of_sum(ValueId dx) {
  dx = early(dx);
  if (weight_ == kNone) return dx;
  return p_.pointwise(ORR_FN_MUL, {dx, p_.cast(early(weight_), p_.type(dx).dtype)});
}

ValueId of_complete_sums(Program& p, ValueId loss) {
  WholeFields fields(p);
  const std::vector<bool> behind = ops_behind(p, {loss});
  for (size_t i = 0; i < behind.size(); ++i) {
    const Op op = p.ops()[i];
    if (!behind[i] || !reads_samples(p, op)) continue;
    for (ValueId v : op.out) {
      if (!is_sum(p, v)) continue;
      const ValueId early = fields.of(v);
      early == kNone ? void(p.completed(v)) : p.note_completed(v, early);
    }
  }
  return p.completed(loss);
}

}  // namespace orrery
