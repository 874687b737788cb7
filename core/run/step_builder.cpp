// SPDX-License-Identifier: Apache-2.0
#include "run/step_builder.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "edit/contract.h"
#include "partition/passes.h"
#include "program/build.h"
#include "program/rewrite.h"
#include "run/probe.h"
#include "run/profile.h"
#include "run/runtime.h"
#include "run/watched.h"

namespace orrery {
namespace {

// Permits fast numerics for the matrix products of forward and backward; ops that strategies make
// of them keep the permission.
void allow_fast_products(Program& p) {
  for (Op& op : p.mutable_ops())
    if (op.kind == "matmul" || op.kind == "gather_matmul" || op.kind == "scatter_matmul")
      op.attrs.set("numerics", std::string("fast"));
}

void allow_fast_sums(Blueprint& b) {
  b.mesh.fast_sums = true;
  b.asked.remarks.push_back(
      "reduce  fast: a rank adds up its microbatches in place, sums of 16 bits in f32, ranks as "
      "the backend does; the bits depend on how many ranks there are");
}

// The parameters that are not frozen and of which the update has read no gradient.
std::vector<std::string> left_alone(const StateList& params, const Measured& update) {
  std::vector<std::string> names;
  for (const std::shared_ptr<State>& param : params)
    if (!param->frozen && !update.gradients.count(param->name)) names.push_back(param->name);
  return names;
}

std::string unread_text(const std::vector<std::string>& names) {
  if (names.empty()) return "";
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, names.size()); ++i)
    text += fmt::format("{}'{}'", i ? ", " : "", names[i]);
  if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
  return fmt::format("the loss does not depend on {} of params: left as {}, without weight decay",
                     text, names.size() == 1 ? "it is" : "they are");
}

// What to say where the number of microbatches, which the script leaves out, is that of the ranks
// and makes the bits depend on it; "": they do not, or the strategies let them differ anyway.
std::string microbatches_text(const Mesh& mesh, const std::vector<StrategyUse>& stack) {
  const int n = mesh.least_microbatches();
  if (n < 2 || mesh.fast_sums || mesh.independent_axis != "" || mesh.alone.on()) return "";
  for (const StrategyUse& use : stack)
    if (described(use).numeric_class != ORR_CLASS_EXACT) return "";
  const std::vector<int>& shares = mesh.shares.of;
  const bool alike = std::all_of(shares.begin(), shares.end(), [](int share) { return share < 2; });
  return fmt::format(
      "microbatches is left out: it is {}, {}, and the last bits depend on it; write microbatches "
      "= "
      "{}, or more, in the options of orrery.compile for equal bits on as many ranks or fewer",
      n, alike ? "as many as ranks share the batch" : "the sum of the ranks' shares", n);
}

// Gathers a value of samples on every rank: each sample's row is put in its place among zeros, and
// these are summed over the batch. Integers travel as f64, which holds them up to 2^53.
ValueId gathered_as_real(Program& p, ValueId x) {
  const int32_t dtype = p.type(x).dtype;
  const int64_t batch_dim = p.value(x).batch_dim(), batch = p.batch_size();
  x = build::batch_first(p, p.cast(x, is_real(dtype) ? dtype : int32_t{ORR_F64}));
  const Dims dims = p.type(x).dims;
  x = build::reshape(p, x, {batch, -1});
  ValueId counts = p.pointwise(ORR_FN_NE, {p.batch_weight(), Operand::number(0)});
  x = p.pointwise(ORR_FN_SELECT,
                  {build::reshape(p, counts, {batch, 1}), x, Operand::number(0)});  // no padding
  const ValueId place = p.batch_input("$place", {ORR_I64, {batch}});
  x = p.add1("total", {p.add1("scatter_add", {place, x}, {{"rows", batch}})});
  x = p.cast(build::reshape(p, x, dims), dtype);
  Dims back;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d)
    back.push_back(d == batch_dim ? 0 : d + (d < batch_dim));
  return batch_dim > 0 ? build::transpose(p, x, back) : x;
}

// The same, of any numbers: i64 travels as multiples of 2^32 and what is left.
ValueId gathered(Program& p, ValueId x) {
  if (p.type(x).dtype != ORR_I64) return gathered_as_real(p, x);
  const auto times = [&](ValueId y, double factor) {
    return p.pointwise(ORR_FN_MUL, {y, Operand::number(factor)});
  };
  const ValueId high =
      p.cast(p.pointwise(ORR_FN_FLOOR, {times(p.cast(x, ORR_F64), 0x1p-32)}), ORR_I64);
  const ValueId low = p.pointwise(ORR_FN_SUB, {x, times(high, 0x1p32)});
  return p.pointwise(ORR_FN_ADD,
                     {times(gathered_as_real(p, high), 0x1p32), gathered_as_real(p, low)});
}

// An auxiliary output in the form that all ranks have: gathered or summed, with memory of its own.
ValueId whole(Program& p, ValueId x) {
  if (p.value(x).batch() == Batch::sharded)
    x = gathered(p, x);
  else if (p.value(x).batch() == Batch::partial)
    x = p.add1("total", {x});
  return p.type(x).dims.empty() ? x : p.pointwise(ORR_FN_INPUT, {x});
}

// Whether v is computed from a sum over the batch: it then exists wherever that is completed.
bool is_made_of_sum(const Program& p, ValueId v) {
  const std::vector<bool> behind = ops_behind(p, {v});
  for (size_t i = 0; i < behind.size(); ++i)
    if (behind[i] && p.ops()[i].kind == "total") return true;
  return false;
}

}  // namespace

// Throws Error for auxiliary outputs that a pipeline cannot give: a stage has only the tensors that
// it computes, and receives values of samples only.
void StepBuilder::check_outputs(const Blueprint& b) const {
  if (b.mesh.schedule.axis.empty()) return;
  for (const std::string& name : unbatched_)
    fail(ORR_INVALID,
         "{}: {} does not depend on the batch, and the stages of strategy.{} have only their own "
         "of it: compute it with orrery.func",
         spec_.line, title_of_result(name), b.mesh.schedule.pipeline_strategy);
}

Blueprint StepBuilder::build(const BatchFields& batch, bool training, int world,
                             const std::vector<StrategyUse>& stack, int64_t microbatches) {
  return build(batch, training, world, stack, microbatches, nullptr);
}

Blueprint StepBuilder::build_pass(const BatchFields& batch, int world,
                                  const std::vector<StrategyUse>& stack, int64_t microbatches,
                                  OverBatches& over) {
  return build(batch, false, world, stack, microbatches, &over);
}

// The state of a sum over the batches of a pass, which programs for batches of all shapes share.
std::shared_ptr<State> StepBuilder::sum_of(size_t i, const Type& type) {
  const std::string name = fmt::format("pass.{} {}", i, to_string(type));
  auto& state = sums_[name];
  if (state) return state;
  state = std::make_shared<State>();
  state->name = name, state->type = type, state->role = Role::state;
  state->site = {"", spec_.line}, state->passing = true;
  return state;
}

Blueprint StepBuilder::build(const BatchFields& batch, bool training, int world,
                             const std::vector<StrategyUse>& stack, int64_t microbatches,
                             OverBatches* over) {
  if (batch.empty()) fail(ORR_INVALID, "{}: the batch has no tensors", spec_.line);
  Profile::Timer timer(Profile::get().once("tracing"));
  Blueprint b;
  remarks_.clear();
  b.mesh.one_lane = world > 1 && !Runtime::get().has_lanes();
  Program& p = b.program;
  p.set_site({"", spec_.line});
  p.set_stream(spec_.stream);
  forget_offers();
  Fields fields;
  for (auto& [name, field] : batch) fields[name] = p.batch_input(name, field.type);
  {
    TraceScope scope(training);
    auto [loss, extra] = spec_.loss(p, fields);
    p.set_site({"", spec_.line});
    std::vector<int32_t> dtypes;  // results keep them, whatever a strategy computes in
    for (auto& [name, traced] : extra) dtypes.push_back(p.type(traced).dtype);
    apply_forward(p, stack, states_, b.asked, training);
    const size_t first = p.outputs().size();
    const std::optional<Training> training_step =
        begin_training(p, p.now(loss), training, b.asked.cotangent);
    for (size_t i = 0; i < extra.size(); ++i)
      p.output(extra[i].first, p.cast(p.now(extra[i].second), dtypes[i]));
    if (over)
      *over = add_up_batches(p, first, [&](size_t i, const Type& type) { return sum_of(i, type); });
    complete_outputs(p, training_step);
    if (training_step) give_gradients(p, *training_step);
    if (spec_.fast) allow_fast_products(p);
    if (spec_.fast_sums) allow_fast_sums(b);
    if (training_step && !stack.empty()) declare_states(p, *training_step);
    apply_strategies(p, stack, world, states_, b.mesh, b.asked, training);
    if (training_step) check_loss(training_step->needs_sums(), b.mesh);
    Measured measured;
    if (training_step) {
      p.set_site({"", spec_.line});
      measured = training_step->update(p, b.mesh.gradient_axis(), b.asked.exchanges,
                                       decides_over_step(b.asked));
      const std::string unread =
          spec_.update ? unread_text(left_alone(spec_.params, measured)) : "";
      if (!unread.empty()) b.asked.remarks.push_back("params  " + unread);
      remarks_ = {unread, microbatches || spec_.local ? "" : microbatches_text(b.mesh, stack)};
    }
    expect_probed(p, spec_.line);
    b.microbatches = microbatches ? microbatches : b.mesh.least_microbatches();
    complete_step(p, b.mesh, b.asked, b.microbatches, training, measured);
  }
  check_outputs(b);
  if (!probed().empty() && b.asked.driving.on())
    fail(ORR_INVALID,
         "{}: probe: with strategy.{} each rank takes steps of its own, whose values are not "
         "gathered: take them from a run without it",
         spec_.line, b.asked.driving.origin);
  if (spec_.fast_sums && b.asked.driving.on())
    fail(ORR_INVALID,
         "{}: reduce is \"fast\", but with strategy.{} each rank takes steps of its own: leave "
         "reduce out",
         spec_.line, b.asked.driving.origin);
  return b;
}

// Gives the results of the trace the form that all ranks have. Gradients become those of the loss.
void StepBuilder::complete_outputs(Program& p, const std::optional<Training>& training) {
  unbatched_.clear();
  const auto outputs = p.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, id] = outputs[i];
    if (p.value(id).batch() == Batch::none && !p.type(id).dims.empty() && !is_made_of_sum(p, id))
      unbatched_.push_back(name);
    const bool gradient = name.starts_with(kGradientOf);
    p.set_phase(gradient ? Phase::backward : Phase::forward);
    p.set_twin(gradient ? p.ops()[static_cast<size_t>(p.value(id).producer)].twin : kNone);
    ValueId x = whole(p, id);
    if (gradient) {
      if (p.type(x).dtype != ORR_F64) x = p.cast(x, ORR_F32);
      if (const ValueId scale = training->scale(p); scale != kNone)
        x = p.pointwise(ORR_FN_MUL, {x, p.cast(scale, p.type(x).dtype)});
    }
    p.mutable_outputs()[i].second = x;
  }
  p.set_twin(kNone), p.set_phase(Phase::forward);
}

// Makes results of the gradients of parameters that are asked for.
void StepBuilder::give_gradients(Program& p, const Training& training) const {
  p.set_phase(Phase::backward);
  for (const std::shared_ptr<State>& param : spec_.params) {
    const std::string name = kGradientOf + param->name;
    if (!std::count(probed().begin(), probed().end(), name)) continue;
    const ValueId x = training.gradient(p, *param);
    if (x != kNone) p.output(name, p.pointwise(ORR_FN_INPUT, {x}));
  }
  p.set_phase(Phase::forward);
}

void StepBuilder::declare_states(Program& p, const Training& training) {
  std::set<std::string> read;  // batches of other shapes may read other parameters
  for (const Value& v : p.values())
    if (v.role == Role::grad) read.insert(v.name);
  std::vector<bool> idle;
  for (const std::shared_ptr<State>& param : spec_.params)
    idle.push_back(param->frozen || !read.count(param->name));
  auto& states = update_states_[idle];
  if (!states)
    states = training.declare_states(p);
  else
    for (const std::shared_ptr<State>& state : *states) p.state_value(state);
}

std::optional<Training> StepBuilder::begin_training(Program& p, ValueId loss, bool training,
                                                    ValueId cotangent) {
  for (auto& s : spec_.params) p.state_value(s);  // every program shards the same parameters
  if (!training) {
    p.mutable_updates().clear();  // an evaluation changes no state, such as running means
    p.output("loss", loss);
    return std::nullopt;
  }
  std::vector<std::shared_ptr<State>> trained;
  TrainParts parts{nullptr, {}, spec_.clips, spec_.grad_norm, cotangent};
  parts.update = spec_.update;
  for (size_t i = 0; i < spec_.params.size(); ++i) {
    if (spec_.update && spec_.params[i]->frozen) continue;
    trained.push_back(spec_.params[i]);
    if (!spec_.update) parts.gradients.push_back(spec_.gradients.at(i));
  }
  if (trained.empty() && !spec_.states.empty())
    fail(ORR_INVALID, "{}: params has no parameter to train: all in it are frozen", spec_.line);
  return Training(p, loss, std::move(trained), std::move(parts));
}

}  // namespace orrery
