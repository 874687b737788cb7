// SPDX-License-Identifier: Apache-2.0
#include "run/drawing.h"

#include "base/error.h"
#include "run/profile.h"

namespace orrery {
namespace {

// Forward and backward; what strategies make of them keeps it.
void allow_fast_products(Program& p) {
  for (Op& op : p.mutable_ops())
    if (op.kind == "matmul") op.attrs.insert_or_assign("numerics", std::string("fast"));
}

// Auxiliary outputs are sums or means over the batch, or do not depend on it.
ValueId whole(Program& p, const std::string& name, ValueId id) {
  const Value& v = p.value(id);
  if (v.batch == Batch::sharded || !v.type.dims.empty())
    p.fail_here(fmt::format("auxiliary output '{}' is {}: reduce it with :mean() or :sum()", name,
                            to_string(v.type)));
  return v.batch == Batch::partial ? p.add1("total", {id}) : id;
}

}  // namespace

Blueprint Drawing::draw(const BatchFields& batch, bool training, int world,
                        const std::vector<StrategyUse>& stack, int64_t microbatches) {
  if (batch.empty()) fail(ORR_INVALID, "{}: the batch has no tensors", spec_.line);
  Profile::Timer timer(Profile::get().once("tracing"));
  Blueprint b;
  Program& p = b.program;
  p.set_site({"", spec_.line});
  Fields fields;
  for (auto& [name, field] : batch) fields[name] = p.batch_input(name, field.type);
  {
    TraceScope scope(p, training);
    auto [loss, extra] = spec_.loss(p, fields);
    p.set_site({"", spec_.line});
    const Asked asked = apply_forward(p, stack);
    if (asked.loss_scale.initial > 0 && !loss_scale_) loss_scale_.emplace(asked.loss_scale);
    finish(b, loss, training, asked.wire);
    for (auto& [name, id] : extra) p.output(name, whole(p, name, id));
  }
  if (spec_.fast) allow_fast_products(p);
  b.spread = apply_strategies(p, stack, world);
  if (loss_scale_ && (b.spread.averaging.every > 0 || b.spread.serving.on()))
    fail(ORR_INVALID,
         "{}: strategy.{} lets ranks train alone, which would each need another loss scale: leave "
         "loss_scale out and compute in bf16 or f32",
         spec_.line, b.spread.serving.on() ? b.spread.serving.cause : b.spread.averaging.cause);
  b.microbatches = spec_.microbatches ? spec_.microbatches
                   : microbatches     ? microbatches
                                      : b.spread.workers();
  return b;
}

void Drawing::finish(Blueprint& b, ValueId loss, bool training, int32_t wire) {
  Program& p = b.program;
  for (auto& s : spec_.params) p.state_value(s);  // every program cuts the same parameters
  if (!training) {
    p.output("loss", loss);
    return;
  }
  std::vector<std::shared_ptr<State>> trained;
  TrainParts parts{nullptr, {}, spec_.clip_norm, loss_scale_ ? &*loss_scale_ : nullptr, wire};
  if (spec_.update) parts.update = noting(b.updating);
  for (size_t i = 0; i < spec_.params.size(); ++i) {
    if (spec_.params[i]->frozen) continue;
    trained.push_back(spec_.params[i]);
    if (!spec_.update) parts.gradients.push_back(gradient_of(*spec_.params[i]));
  }
  build_training(p, loss, trained, parts);
}

// The optimizer's update, which leaves a note of what it takes and changes.
decltype(RunSpec::update) Drawing::noting(Updating& note) const {
  return [this, &note](Program& p, const std::shared_ptr<State>& param, ValueId value,
                       ValueId gradient) {
    const size_t before = p.updates().size();
    note.gradients[param->name] = gradient;
    ValueId next = spec_.update(p, param, value, gradient);
    for (size_t i = before; i < p.updates().size(); ++i)
      note.of[p.value(p.updates()[i].first).name] = param->name;
    return next;
  };
}

const std::shared_ptr<State>& Drawing::gradient_of(const State& param) const {
  for (auto& g : spec_.gradients)
    if (g->name == "grad." + param.name) return g;
  fail(ORR_FAILED, "there is no gradient tensor for '{}'", param.name);
}

}  // namespace orrery
