// SPDX-License-Identifier: Apache-2.0
#include "program/train.h"

#include <algorithm>

#include "base/error.h"
#include "program/autodiff.h"
#include "program/axes.h"
#include "program/build.h"
#include "program/rewrite.h"
#include "program/varying.h"

namespace orrery {
namespace {

bool is_cast(const Op& op) {
  return op.kind == "pointwise" && op.expr.instrs.back().fn == ORR_FN_CAST;
}
bool is_view(const Op& op) { return op.kind == "reshape" || op.kind == "transpose"; }

const Op& maker(const Program& p, ValueId v) {
  return p.ops()[static_cast<size_t>(p.value(v).producer)];
}

bool reads_samples(const Program& p, const Op& op) {
  return std::any_of(op.in.begin(), op.in.end(),
                     [&](ValueId v) { return p.value(v).batch() == Batch::sharded; });
}

// The sum over the batch before a cast that follows it, if an op makes that sum of samples: it is
// completed in the dtype in which it is made.
ValueId before_cast(const Program& p, ValueId sum) {
  if (!is_cast(maker(p, sum))) return sum;
  ValueId before = maker(p, sum).in[0], made = before;
  while (p.value(made).producer != kNone && is_view(maker(p, made))) made = maker(p, made).in[0];
  return p.value(made).producer != kNone && reads_samples(p, maker(p, made)) ? before : sum;
}

// The sums over the batch of a parameter's uses, in the form in which they will be completed.
std::vector<ValueId> sums_of_uses(Program& p, const GradientParts& parts, const State& param) {
  std::vector<ValueId> uses;
  for (ValueId part : parts.partial) {
    ValueId use = before_cast(p, part);
    p.mutable_value(use).role = Role::grad;
    p.mutable_value(use).name = param.name;
    uses.push_back(use);
  }
  return uses;
}

// Marks the ops that sum over samples for this sum: it is completed over the ranks of `axis` only.
void complete_over(Program& p, ValueId sum, const std::string& axis) {
  const OpId maker = p.value(sum).producer;
  if (maker == kNone || p.value(sum).batch() != Batch::partial) return;
  Op& op = p.mutable_ops()[static_cast<size_t>(maker)];
  if (reads_samples(p, op))
    op.completed_over = axis;
  else
    for (ValueId v : Op(op).in) complete_over(p, v, axis);
}

// The gradient of one parameter before the one division: the totals of its uses, added in order.
// `total` is where the summands of all microbatches and ranks are added: where ranks share the
// batch, it becomes an all-reduce (lower/kernels/bucket.cpp). `varies`: axes over which it is not
// added, because a strategy's hook exchanges gradients there.
ValueId raw_gradient(Program& p, const std::vector<ValueId>& uses, const State& param,
                     const std::string& varies) {
  ValueId sum = kNone;
  for (ValueId use : uses) {
    Attrs attrs;
    if (!varies.empty()) attrs.set("varies", varies);
    ValueId total = p.cast(p.add1("total", {use}, attrs), param.type.dtype);
    sum = sum == kNone ? total : p.pointwise(ORR_FN_ADD, {sum, total});
  }
  return sum;
}

ValueId tree_sum(Program& p, std::vector<ValueId> terms) {
  while (terms.size() > 1) {
    std::vector<ValueId> next;
    for (size_t i = 0; i + 1 < terms.size(); i += 2)
      next.push_back(p.pointwise(ORR_FN_ADD, {terms[i], terms[i + 1]}));
    if (terms.size() % 2) next.push_back(terms.back());
    terms = std::move(next);
  }
  return terms[0];
}

struct Gradients {
  std::vector<ValueId> raw;      // by parameter; kNone: no gradient that depends on the batch
  std::vector<ValueId> regular;  // by parameter; kNone: no penalty
  ValueId scale = kNone;         // 1 / (weight and loss scale)
};

int32_t at_least_f32(int32_t dtype) { return dtype == ORR_F64 ? dtype : int32_t{ORR_F32}; }

// The sum of a gradient's squares, in f32 or, of f64, in f64. Where the gradient is a cast of a
// 16-bit sum, the squares are those of that sum: the cast, which would have to wait from the norm
// to the update, is then computed in the update. Squares of 16 bits are added in f32: f16 ends at
// 65,504.
ValueId sum_of_squares(Program& p, ValueId x) {
  const Type type = p.type(x);
  const auto is_short = [&](ValueId v) { return orr_dtype_bytes(p.type(v).dtype) == 2; };
  if (type.dims.empty())
    return build::reduce(p, "sumsq", p.cast(x, at_least_f32(type.dtype)), {}, false);
  if (p.value(x).producer != kNone && is_cast(maker(p, x)) && type.dtype == ORR_F32 &&
      is_short(maker(p, x).in[0]))
    x = maker(p, x).in[0];
  if (is_short(x))
    return p.add1("reduce", {x},
                  {{"fn", std::string("sumsq")},
                   {"begin", int64_t{0}},
                   {"end", static_cast<int64_t>(type.dims.size())},
                   {"dtype", int64_t{ORR_F32}}});
  return build::reduce(p, "sumsq", x, {}, false);
}

ValueId squared_norm(Program& p, const Gradients& g, size_t i, ValueId inverse) {
  if (g.regular[i] == kNone) {
    ValueId sq = sum_of_squares(p, g.raw[i]);
    if (inverse == kNone) return sq;
    return p.pointwise(ORR_FN_MUL, {sq, p.pointwise(ORR_FN_MUL, {inverse, inverse})});
  }
  if (g.raw[i] == kNone) return sum_of_squares(p, g.regular[i]);
  ValueId mean = inverse == kNone ? g.raw[i] : p.pointwise(ORR_FN_MUL, {g.raw[i], inverse});
  ValueId whole = p.pointwise(ORR_FN_ADD, {mean, g.regular[i]});
  return sum_of_squares(p, whole);
}

// By parameter, the squared norm of its gradient; kNone if it has none.
std::vector<ValueId> squared_norms(Program& p, const Gradients& g) {
  std::vector<ValueId> squares(g.raw.size(), kNone);
  for (size_t i = 0; i < squares.size(); ++i)
    if (g.raw[i] != kNone || g.regular[i] != kNone) squares[i] = squared_norm(p, g, i, g.scale);
  return squares;
}

// The sum of those squares that `counts` is true for; kNone if there are none.
ValueId sum_where(Program& p, std::vector<ValueId> squares, const std::vector<bool>& counts) {
  for (size_t i = 0; i < squares.size(); ++i)
    if (!counts[i]) squares[i] = kNone;
  squares.erase(std::remove(squares.begin(), squares.end(), kNone), squares.end());
  return squares.empty() ? kNone : tree_sum(p, squares);
}

// The factor min(1, limit / (norm + 1e-6)).
ValueId clip_factor(Program& p, ValueId norm, double limit) {
  ValueId shifted = p.pointwise(ORR_FN_ADD, {norm, Operand::number(1e-6)});
  ValueId factor = p.pointwise(ORR_FN_DIV, {p.constant(limit, p.type(norm).dtype), shifted});
  return p.pointwise(ORR_FN_MIN, {factor, Operand::number(1)});
}

ValueId times(Program& p, ValueId x, ValueId factor) {
  if (factor == kNone) return x;
  return p.pointwise(ORR_FN_MUL, {x, p.cast(factor, p.type(x).dtype)});
}

// What the gradient of a parameter is multiplied by, and what that of its penalty; kNone: nothing.
struct Factors {
  ValueId sum = kNone, regular = kNone;
};

// By parameter: 1 / weight, and what keeps norms within their limits. `squares` are by parameter,
// `root` is the norm of all.
std::vector<Factors> factors_of(Program& p, const Gradients& g,
                                const std::vector<std::shared_ptr<State>>& params,
                                const std::vector<ClippedNorm>& clips,
                                const std::vector<ValueId>& squares, ValueId root) {
  std::vector<Factors> factors(params.size(), Factors{g.scale, kNone});
  for (const ClippedNorm& clip : clips) {
    std::vector<bool> counts;
    for (const auto& param : params)
      counts.push_back(std::count(clip.params.begin(), clip.params.end(), param) > 0);
    ValueId norm = root;
    if (std::count(counts.begin(), counts.end(), false) > 0) {
      const ValueId squared = sum_where(p, squares, counts);
      norm = squared == kNone ? kNone : p.pointwise(ORR_FN_SQRT, {squared});
    }
    if (norm == kNone) continue;
    const ValueId factor = clip_factor(p, norm, clip.limit);
    const ValueId scale = g.scale == kNone ? factor : p.pointwise(ORR_FN_MUL, {g.scale, factor});
    for (size_t i = 0; i < params.size(); ++i)
      if (counts[i]) factors[i] = {scale, factor};
  }
  return factors;
}

// Scales every gradient to a summand of the mean, and passes it through the hooks.
void exchange(Program& p, Gradients& g, const std::vector<std::shared_ptr<State>>& params,
              const std::vector<GradientHook>& hooks) {
  for (size_t i = 0; i < params.size(); ++i) {
    if (g.raw[i] == kNone) continue;
    p.set_site(params[i]->site);
    ValueId x = times(p, g.raw[i], g.scale);
    for (auto hook = hooks.rbegin(); hook != hooks.rend(); ++hook) {
      p.set_origin(hook->origin);
      x = hook->exchange(p, params[i], x);
      p.set_site({params[i]->site.region, hook->line});
      if (p.type(x) != params[i]->type)
        p.fail_here(fmt::format(
            "exchange of strategy.{} was given the gradient of '{}' {} and "
            "returned {}: return one of the same shape and dtype",
            hook->origin, params[i]->name, to_string(params[i]->type), to_string(p.type(x))));
      check_varies_within(p, x, without_axis(p.value(x).varying(), hook->axis),
                          fmt::format("what exchange returns for '{}'", params[i]->name));
    }
    p.set_origin("");
    g.raw[i] = x;
  }
  g.scale = kNone;
}

}  // namespace

Training::Training(Program& p, ValueId loss, std::vector<std::shared_ptr<State>> params,
                   TrainParts parts)
    : params_(std::move(params)), parts_(std::move(parts)), loss_(loss) {
  p.output("loss", loss);
  for (auto& param : params_) values_.push_back(p.state_value(param));
  const ValueId factor = parts_.cotangent;
  Differentiated d =
      differentiate(p, loss, values_, factor == kNone ? kNone : p.cast(factor, p.type(loss).dtype));
  weight_ = d.weight, needs_sums_ = d.needs_sums;
  const Site site = p.site();
  for (size_t i = 0; i < params_.size(); ++i) {
    p.set_site(params_[i]->site);
    uses_.push_back(sums_of_uses(p, d.parts[i], *params_[i]));
    regular_.push_back(d.parts[i].regular);
  }
  p.set_site(site);
}

std::optional<std::vector<std::shared_ptr<State>>> Training::declare_states(Program& p) const {
  Program tried = p;
  tried.set_axes({{"*", 1}});
  try {
    update(tried);
  } catch (const Error&) {
    return std::nullopt;  // update() throws, with the axes that strategies will have made by then
  }
  std::vector<std::shared_ptr<State>> found;
  for (size_t i = p.values().size(); i < tried.values().size(); ++i)
    if (const Value& v = tried.values()[i]; v.state && v.role == Role::state)
      found.push_back(v.state);
  for (const std::shared_ptr<State>& state : found) p.state_value(state);
  return found;
}

ValueId Training::scale(Program& p) const {
  if (weight_ == kNone) return kNone;
  int32_t dtype = ORR_F32;
  for (const std::shared_ptr<State>& param : params_)
    if (param->type.dtype == ORR_F64) dtype = ORR_F64;
  ValueId weight = p.add1("total", {p.now(weight_)});
  if (dtype == ORR_F64) weight = p.cast(weight, dtype);
  const ValueId inverse = p.cast(p.pointwise(ORR_FN_RECIP, {weight}), dtype);
  if (parts_.cotangent == kNone) return inverse;
  return p.pointwise(ORR_FN_DIV, {inverse, p.cast(parts_.cotangent, dtype)});
}

ValueId Training::gradient(Program& p, const State& param) const {
  for (size_t i = 0; i < params_.size(); ++i) {
    if (params_[i].get() != &param) continue;
    ValueId sum = raw_gradient(p, uses_[i], param, "");
    if (sum == kNone) return regular_[i];
    sum = times(p, sum, scale(p));
    return regular_[i] == kNone ? sum : p.pointwise(ORR_FN_ADD, {sum, regular_[i]});
  }
  return kNone;
}

// The optimizer's value would replace one that the loss has given a parameter.
static void refuse_update_of_loss(const Program& p, ValueId parameter) {
  for (const auto& [state, next] : p.updates())
    if (state == parameter)
      fail(ORR_INVALID,
           "{}the loss updates '{}', which this step trains, and the optimizer would replace its "
           "value: change it between steps, in an orrery.func or by :write, or freeze it",
           p.value(next).site.prefix(), p.value(parameter).name);
}

// By value: whether the loss depends on it. The derivative may still be zero, as of a rounding.
static std::vector<bool> read_by_loss(const Program& p, ValueId loss) {
  const std::vector<bool> behind = ops_behind(p, {loss}, [&](ValueId v) {
    return !is_real(p.type(v).dtype) || maker(p, v).kind == "stop_gradient";
  });
  std::vector<bool> read(p.values().size());
  for (size_t i = 0; i < behind.size(); ++i)
    for (ValueId v : p.ops()[i].in)
      if (behind[i]) read[static_cast<size_t>(v)] = true;
  return read;
}

// Moves the ops from `begin` on that make numbers of states and run-time scalars alone, such as
// counts of updates, before the others. They are then neighbours, whose results have memory of
// their own, so that a device may run those of all parameters together.
static void numbers_first(Program& p, size_t begin) {
  std::vector<bool> early(p.ops().size());
  std::vector<size_t> order(p.ops().size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    const Op& op = p.ops()[i];
    early[i] = i >= begin && op.kind == "pointwise" &&
               std::all_of(op.out.begin(), op.out.end(),
                           [&](ValueId v) { return p.type(v).dims.empty(); }) &&
               std::all_of(op.in.begin(), op.in.end(), [&](ValueId v) {
                 const OpId maker = p.value(v).producer;
                 return maker == kNone || early[static_cast<size_t>(maker)];
               });
  }
  std::stable_partition(order.begin() + static_cast<long>(begin), order.end(),
                        [&](size_t i) { return early[i]; });
  std::vector<OpId> moved(order.size());
  for (size_t i = 0; i < order.size(); ++i) moved[order[i]] = static_cast<OpId>(i);
  std::vector<Op> from;
  from.swap(p.mutable_ops());
  for (size_t i : order) {
    Op& op = p.mutable_ops().emplace_back(std::move(from[i]));
    if (op.twin != kNone) op.twin = moved[static_cast<size_t>(op.twin)];
    for (ValueId v : op.out) p.mutable_value(v).producer = moved[i];
  }
}

Measured Training::update(Program& p, const std::string& batch,
                          const std::vector<GradientHook>& hooks, bool norm) const {
  const Site site = p.site();
  const size_t first = p.ops().size();
  p.set_phase(Phase::update);
  std::string varies;
  for (const GradientHook& hook : hooks) varies = with_axis(varies, hook.axis);
  Gradients g;
  for (ValueId v : regular_) g.regular.push_back(p.now(v));
  for (size_t i = 0; i < params_.size(); ++i) {
    p.set_site(params_[i]->site);
    std::vector<ValueId> uses;
    for (ValueId use : uses_[i]) uses.push_back(p.now(use));
    if (!hooks.empty())
      for (ValueId use : uses) complete_over(p, use, without_axis(batch, varies));
    g.raw.push_back(raw_gradient(p, uses, *params_[i], varies));
  }
  p.set_site(site);
  g.scale = scale(p);
  if (!hooks.empty()) exchange(p, g, params_, hooks);
  const bool told = !parts_.clips.empty() || parts_.tells_norm;
  std::vector<ValueId> squares;
  ValueId squared = kNone, root = kNone;
  if (norm || told) {
    squares = squared_norms(p, g);
    squared = sum_where(p, squares, std::vector<bool>(squares.size(), true));
  }
  if (told && squared != kNone) {
    root = p.pointwise(ORR_FN_SQRT, {squared});
    p.output("grad_norm", root);
  }
  const std::vector<Factors> factors = factors_of(p, g, params_, parts_.clips, squares, root);
  Measured found;
  const std::vector<bool> read = read_by_loss(p, p.now(loss_));
  for (size_t i = 0; i < params_.size(); ++i) {
    ValueId gradient = g.raw[i] == kNone ? kNone : times(p, g.raw[i], factors[i].sum);
    if (ValueId extra = g.regular[i]; extra != kNone) {
      extra = times(p, extra, factors[i].regular);
      gradient = gradient == kNone ? extra : p.pointwise(ORR_FN_ADD, {gradient, extra});
    }
    if (gradient == kNone) {
      if (parts_.update && !read[static_cast<size_t>(values_[i])]) continue;  // it is left alone
      gradient = p.constant(0, params_[i]->type.dtype, params_[i]->type.dims);
    }
    found.gradients[params_[i]->name] = gradient;
    p.set_site(params_[i]->site);
    if (parts_.update) {
      refuse_update_of_loss(p, values_[i]);
      const size_t before = p.updates().size();
      p.update(values_[i], parts_.update(p, params_[i], values_[i], gradient));
      for (size_t u = before; u < p.updates().size(); ++u)
        if (State& s = *p.value(p.updates()[u].first).state; s.role == Role::state)
          s.beside = params_[i]->name;
    } else {
      p.update(p.state_value(parts_.gradients.at(i)), gradient);
    }
  }
  p.set_site(site);
  numbers_first(p, first);
  if (squared != kNone) found.squared_norm = p.cast(squared, ORR_F32);
  p.set_phase(Phase::forward);
  found.loss = p.now(loss_);
  return found;
}

void build_training(Program& p, ValueId loss, const std::vector<std::shared_ptr<State>>& params,
                    const TrainParts& parts) {
  Training(p, loss, params, parts).update(p);
}

}  // namespace orrery
