// SPDX-License-Identifier: Apache-2.0
//
// A stack of strategies, applied in order.
#include <algorithm>

#include "base/error.h"
#include "edit/calls.h"
#include "edit/contract.h"
#include "edit/edit_table.h"
#include "partition/apart.h"
#include "partition/cut_program.h"
#include "partition/passes.h"
#include "partition/stage.h"
#include "partition/stage_ranks.h"
#include "plugin/host.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

// Checks that the sizes of the axes multiply to the number of ranks.
void check_taken(const Mesh& mesh) {
  int taken = 1;
  std::string product;
  for (const Axis& axis : mesh.axes) {
    taken *= axis.size;
    product += fmt::format("{}{} {}", product.empty() ? "" : " x ", axis.name, axis.size);
  }
  if (taken != mesh.world)
    fail(ORR_INVALID, "{} {} ranks ({}) but the job has {}: change a size or -n", ranks_left_over,
         taken, product.empty() ? "none" : product, mesh.world);
}

// Throws an error of a strategy. ORR_INVALID is a refusal; any other code means that the strategy
// itself has failed.
void check_edits(orr_status* status, const StrategyUse& use) {
  const bool failed = status && !use.script && host_table().error_code(status) == ORR_FAILED;
  check(status, "strategy." + use.name + (failed ? " failed" : ""));
}

// Calls a hook; its errors get the Lua line of the strategy.
template <class Call>
void call_hook(const std::string& line, Call call) {
  try {
    call();
  } catch (const Error& e) {
    throw Error(e.code(), (line.empty() ? "" : line + ": ") + e.what());
  }
}

// Calls one entry of every strategy's table.
template <class Entry>
void call_each(Program& p, Mesh& mesh, const std::vector<StrategyUse>& stack,
               StrategyStates& states, bool training, Entry entry) {
  std::map<std::string, std::string> provided;
  for (const StrategyUse& use : stack) {
    call_hook(use.line, [&] {
      const orr_strategy_api& api = strategy_of(use);
      const orr_strategy_info info = described(use);
      check_options(use, info);
      check_contract(use, info, stack, provided);
      const bool forward = entry == &orr_strategy_api::transform_forward;
      orr_program edited{&p, &mesh, use.name, &use, &states, forward, training};
      orr_options options = options_of(use);
      p.set_origin(use.name);
      check_edits((api.*entry)(api.self, &edited, &edit_table, &options), use);
      p.set_origin("");
      settle(edited);
    });
  }
}

void check_one_for_all(const Mesh& mesh, const CompleteHook& hook) {
  if (hook.when != CompleteHook::decides || (mesh.apart.empty() && !mesh.driving.on())) return;
  fail(ORR_INVALID,
       "{}{} lets ranks train alone, which would each need another {}, that of strategy.{} being "
       "one for all: leave one of the two out",
       hook.line.empty() ? "" : hook.line + ": ",
       mesh.driving.on() ? "strategy." + mesh.driving.origin : "axis '" + mesh.apart + "'",
       hook.what, hook.origin);
}

void call_complete(Program& p, const CompleteHook& hook, const Measured& measured) {
  const Phase phase = p.phase();
  p.set_phase(Phase::update);
  const bool decides = hook.when == CompleteHook::decides, last = hook.when == CompleteHook::last;
  call_hook(hook.line, [&] {
    hook.call(p, last ? kNone : measured.loss, decides ? measured.squared_norm : kNone);
  });
  p.set_phase(phase);
}

// Calls the hooks on the whole step, in the order of their `when`.
void call_completing(Program& p, Mesh& mesh, const Measured& measured) {
  for (const CompleteHook& hook : mesh.completing) check_one_for_all(mesh, hook);
  for (auto when : {CompleteHook::step, CompleteHook::decides, CompleteHook::last})
    for (const CompleteHook& hook : mesh.completing)
      if (hook.when == when) call_complete(p, hook, measured);
  mesh.completing.clear();
}

// Orders the placings: axes on which only parameters are cut come first. So activations that a
// strategy places on another axis move within the part that a rank already has.
void order_placings(const Program& p, Mesh& mesh) {
  std::stable_partition(mesh.placed.begin(), mesh.placed.end(),
                        [](const Placing& placing) { return placing.values.empty(); });
  CutProgram cut = cut_program(p, mesh, 0);
  if (mesh.placed.size() > 1) check_exchanges(p, mesh);
  for (const std::string& remark : cut.remarks) mesh.remarks.push_back(remark);
  for (Placing& placing : mesh.placed) placing.segments = cut.segments[placing.axis];
}

// Checks the conditions for values that are cut over an axis that deals the batch. Ranks that
// exchange samples run the same number of microbatches and train together. Where microbatches run
// one after another, those of a rank must be one node of the tree of sums, and those of all these
// ranks too: both numbers are powers of two, unless these are all ranks that share the batch.
void check_gathered(const Mesh& mesh, int64_t microbatches) {
  const std::string axis = mesh.gathered_axis();
  const int64_t ranks = mesh.size_of(axis), all = mesh.batch_ranks(), each = microbatches / all;
  if (ranks == 1) return;
  std::string alone = mesh.apart;
  for (const GradientHook& hook : mesh.exchanges) alone = with_axis(alone, hook.axis);
  if (has_axis(alone, axis))
    fail(ORR_INVALID,
         "the ranks of axis '{}' train apart or exchange gradients of their own, and values are "
         "cut over it: leave one of the two out",
         axis);
  auto power = [](int64_t n) { return (n & (n - 1)) == 0; };
  const bool nodes = power(each) && (ranks == all || power(ranks));
  if (deals_evenly(microbatches, mesh) && (nodes || !mesh.one_by_one)) return;
  const std::string more = fmt::format(
      ", as strategy.{} runs them one after another a power of two (of ranks, too, "
      "where axis '{}' has replicas)",
      mesh.slicer, axis);
  fail(ORR_INVALID,
       "{} microbatches on the {} ranks that share the batch, of which the {} of axis '{}' send "
       "each other samples: each rank needs the same number{}",
       microbatches, all, ranks, axis, mesh.one_by_one ? more : "");
}

// Checks the conditions for exchanges of parameters and gradients for each microbatch
// (orr_shard::each): all ranks that share the batch take part in each.
void check_each(const Mesh& mesh, int64_t microbatches) {
  const auto asked = std::find_if(mesh.sharded.begin(), mesh.sharded.end(),
                                  [](const auto& entry) { return entry.second.each; });
  if (asked == mesh.sharded.end()) return;
  const Sharded& how = asked->second;
  auto refuse = [&](const std::string& why) {
    fail(ORR_INVALID,
         "strategy.{} is to exchange for each microbatch, {}: change that, or leave the option out",
         how.origin, why);
  };
  if (!mesh.one_by_one)
    refuse("and all of a rank's run in one call: add a strategy that runs them one after another");
  if (how.what < ORR_SHARD_PARAM && !mesh.fast_sums)
    refuse("which only sends gradients here, and only under reduce = \"fast\" of compile");
  if (!deals_evenly(microbatches, mesh))
    refuse(
        fmt::format("and {} are not the same number on each of the {} ranks that share the batch",
                    microbatches, mesh.batch_ranks()));
}

// A parameter that is cut over an axis which also splits the batch is not sharded over that axis a
// second time: the rank that has a part of it computes all of that part's gradient.
void keep_cut_whole(Mesh& mesh) {
  for (const Placing& placing : mesh.placed) {
    if (!has_axis(mesh.batch_axis, placing.axis)) continue;
    for (auto& [name, how] : placing.cuts)
      if (mesh.sharded.erase(name))
        mesh.remarks.push_back(fmt::format("{}: the training of '{}' is cut over axis '{}' alone",
                                           placing.origin, name, placing.axis));
  }
}

// A program of a step's states, without ops, for periodic programs to begin with.
Program over_states(const Program& step, const Mesh& mesh) {
  Program p;
  p.set_axes(axes_of(mesh));
  p.set_phase(Phase::update);
  for (auto& [state, next] : step.updates()) {
    const ValueId v = p.state_value(step.value(state).state);
    p.mutable_value(v).set_varying(with_axis(step.value(state).varying(), mesh.apart));
    p.mutable_value(v).site = step.value(state).site;
  }
  return p;
}

// Notes in the program's states on which axes they vary. Those of a step also vary on the axes
// whose coordinates train apart.
void tell_states(const Program& p, const std::string& apart) {
  for (auto& [state, next] : p.updates()) {
    State& s = *p.value(state).state;
    s.varying = with_axis(p.value(state).varying(), apart);
    if (!is_real(s.type.dtype) && s.leave == Leave::mean) s.leave = Leave::first;
  }
}

void note_holders(const Program& step, Mesh& mesh) {
  std::map<std::string, std::vector<int>> held;
  const StageRanks stage_ranks(step, mesh);
  for (auto& [v, ranks] : stage_ranks.holders())
    for (size_t r = ranks.find_first(); r != Ranks::npos; r = ranks.find_next(r))
      held[step.value(v).name].push_back(static_cast<int>(r));
  mesh.held_at = std::move(held);
}

void write_rounds(const Program& step, const Mesh& mesh, Periodic& one) {
  for (int round = 0; round < one.n_rounds; ++round) {
    Program p = over_states(step, mesh);
    p.set_origin(one.origin);
    p.set_site({"", one.line});
    call_hook(one.line, [&] { one.write(p, round); });
    // Frozen parameters that are cut with others: both programs then cut these alike.
    for (const Value& v : step.values())
      if (v.state && mesh.sharded.count(v.name)) p.state_value(v.state);
    update_copies(p);
    tell_states(p, "");
    group_collectives(p);
    one.rounds.push_back(std::make_shared<const Program>(std::move(p)));
  }
  one.write = nullptr;
}

// By op: the new ops that are to stand right before it.
StandBefore standing_of(const orr_program& edited) {
  StandBefore found;
  for (size_t i = 0; i < edited.stands.size(); ++i) {
    const auto [first, before] = edited.stands[i];
    const bool last = i + 1 == edited.stands.size();
    const size_t end =
        last ? edited.program->ops().size() : static_cast<size_t>(edited.stands[i + 1].first);
    for (auto op = static_cast<size_t>(first); before != kNone && op < end; ++op)
      found[before].push_back(static_cast<OpId>(op));
  }
  return found;
}

void note_cuts(const Program& p, const Mesh& mesh, StrategyStates& states) {
  for (const Placing& placing : mesh.placed)
    for (const Value& v : p.values()) {
      if (v.role != Role::param) continue;
      const auto asked = placing.cuts.find(v.name);
      auto& known = states.cuts[placing.axis][v.name];
      known = asked == placing.cuts.end() ? std::nullopt : std::optional(asked->second);
    }
}

// An evaluation has the parameters as the training step has them, even if a strategy that looks for
// layers to cut finds others there: a batchnorm, for example, needs no sums over the batch.
void follow_cuts(Mesh& mesh, const StrategyStates& states) {
  for (Placing& placing : mesh.placed) {
    const auto known = states.cuts.find(placing.axis);
    if (known == states.cuts.end()) continue;
    for (const auto& [name, asked] : known->second) {
      placing.cuts.erase(name);
      if (asked) placing.cuts.emplace(name, *asked);
    }
  }
}

}  // namespace

void settle(orr_program& edited) {
  Program& p = *edited.program;
  order_ops(p, standing_of(edited));
  edited.stands.clear();
  if (edited.retyped) check_types(p);
  edited.retyped = false;
  p.set_twin(kNone), p.set_stage(0);
  if (edited.before) p.set_phase(edited.before->phase), p.set_site(edited.before->site);
  edited.before.reset();
}

Asked apply_forward(Program& p, const std::vector<StrategyUse>& stack, StrategyStates& states,
                    bool training) {
  Mesh mesh;
  call_each(p, mesh, stack, states, training, &orr_strategy_api::transform_forward);
  return mesh.asked;
}

void apply_strategies(Program& p, const std::vector<StrategyUse>& stack, int world,
                      StrategyStates& states, Mesh& mesh, bool training) {
  mesh.world = world;
  call_each(p, mesh, stack, states, training, &orr_strategy_api::transform);
  if (training)
    note_cuts(p, mesh, states);
  else
    follow_cuts(mesh, states);
  check_taken(mesh);
}

bool decides_over_step(const Mesh& mesh) {
  return std::any_of(mesh.completing.begin(), mesh.completing.end(),
                     [](const CompleteHook& hook) { return hook.when == CompleteHook::decides; });
}

void complete_step(Program& p, Mesh& mesh, int64_t microbatches, bool training,
                   const Measured& measured) {
  if (!training) {
    mesh.periodic.clear(), mesh.driving = {};
    std::erase_if(mesh.completing,
                  [](const CompleteHook& hook) { return hook.when != CompleteHook::last; });
  }
  call_completing(p, mesh, measured);
  check_whole_batch(p, mesh);
  if (!mesh.pipe_axis.empty()) {
    for (Op& op : p.mutable_ops())
      if (op.phase == Phase::update) op.stage = static_cast<int32_t>(mesh.chunk_at.size()) - 1;
    if (!training) follow_states(p, mesh);
    complete_sums(p);
  }
  if (training && !mesh.apart.empty()) sum_apart(p, mesh, microbatches);
  if (mesh.driving.on()) write_driven(p, mesh, microbatches, measured.gradients);
  if (mesh.shares.leave_out() && mesh.one_by_one)
    fail(ORR_INVALID,
         "strategy.{} gives some ranks no microbatches, so microbatches cannot run one after "
         "another: leave out the strategy that orders microbatches",
         mesh.shares.origin);
  if (!mesh.gathered_axis().empty()) check_gathered(mesh, microbatches), keep_cut_whole(mesh);
  if (training) check_each(mesh, microbatches);
  if (!mesh.placed.empty()) order_placings(p, mesh);
  read_copies(p, mesh);
  tell_states(p, mesh.apart);
  group_collectives(p);
  if (!mesh.pipe_axis.empty() && !mesh.periodic.empty()) note_holders(p, mesh);
  for (Periodic& one : mesh.periodic) write_rounds(p, mesh, one);
  mesh.exchanges.clear();
}

std::optional<uint64_t> predict_bytes(const StrategyUse& use, const orr_predict_query& query) {
  const orr_strategy_api& api = strategy_of(use);
  if (!api.predict) return std::nullopt;
  orr_prediction prediction{};
  prediction.size = sizeof prediction;
  orr_status* status = api.predict(api.self, &query, &prediction);
  if (status && host_table().error_code(status) == ORR_UNIMPLEMENTED) {
    host_table().error_release(status);
    return std::nullopt;
  }
  check(status, "strategy." + use.name + ": predict");
  return prediction.bytes_sent;
}

}  // namespace orrery
