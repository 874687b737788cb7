// SPDX-License-Identifier: Apache-2.0
//
// What is left to do once a step's update is written: the strategies' hooks on the whole step,
// checks of what they ask of the ranks, and programs that run between steps.
#include <algorithm>

#include "base/error.h"
#include "edit/calls.h"
#include "partition/cut_program.h"
#include "partition/independent.h"
#include "partition/passes.h"
#include "partition/stage.h"
#include "partition/stage_ranks.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

void check_one_for_all(const Mesh& mesh, const CompleteHook& hook) {
  if (hook.when != CompleteHook::decides || (mesh.independent_axis.empty() && !mesh.alone.on()))
    return;
  fail(ORR_INVALID,
       "{}{} lets ranks train alone, which would each need another {}, that of strategy.{} being "
       "one for all: leave one of the two out",
       hook.line.empty() ? "" : hook.line + ": ",
       mesh.alone.on() ? "strategy." + mesh.alone.strategy : "axis '" + mesh.independent_axis + "'",
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
void call_completing(Program& p, const Mesh& mesh, Asked& asked, const Measured& measured) {
  for (const CompleteHook& hook : asked.completing) check_one_for_all(mesh, hook);
  for (auto when : {CompleteHook::step, CompleteHook::decides, CompleteHook::last})
    for (const CompleteHook& hook : asked.completing)
      if (hook.when == when) call_complete(p, hook, measured);
  asked.completing.clear();
}

// Orders the axes over which values are cut: those that cut only parameters come first. So when a
// later axis has an activation moved, a rank moves only the part that it has by then.
void order_placings(const Program& p, Mesh& mesh, Asked& asked) {
  std::stable_partition(mesh.placed.begin(), mesh.placed.end(),
                        [](const Placing& placing) { return placing.values.empty(); });
  CutProgram cut = cut_program(p, mesh, 0);
  if (mesh.placed.size() > 1) check_exchanges(p, mesh);
  for (const std::string& remark : cut.remarks) asked.remarks.push_back(remark);
  for (Placing& placing : mesh.placed) placing.segments = cut.segments[placing.axis];
}

// Checks the conditions for values that are cut over a batch axis. Ranks that
// exchange samples run the same number of microbatches and train together. Where microbatches run
// one after another, those of a rank must be one node of the tree of sums, and those of all these
// ranks too: both numbers are powers of two, unless these are all ranks that share the batch.
void check_gathered(const Mesh& mesh, const Asked& asked, int64_t microbatches) {
  const std::string axis = mesh.gathered_axis();
  const int64_t ranks = mesh.size_of(axis), all = mesh.batch_ranks(), each = microbatches / all;
  if (ranks == 1) return;
  std::string alone = mesh.independent_axis;
  for (const GradientHook& hook : asked.exchanges) alone = with_axis(alone, hook.axis);
  if (has_axis(alone, axis))
    fail(ORR_INVALID,
         "the ranks of axis '{}' train apart or exchange gradients of their own, and values are "
         "cut over it: leave one of the two out",
         axis);
  auto power = [](int64_t n) { return (n & (n - 1)) == 0; };
  const bool nodes = power(each) && (ranks == all || power(ranks));
  if (assigns_evenly(microbatches, mesh) && (nodes || !mesh.schedule.one_by_one)) return;
  const std::string more = fmt::format(
      ", as strategy.{} runs them one after another a power of two (of ranks, too, "
      "where axis '{}' has replicas)",
      mesh.schedule.microbatch_strategy, axis);
  fail(ORR_INVALID,
       "{} microbatches on the {} ranks that share the batch, of which the {} of axis '{}' send "
       "each other samples: each rank needs the same number{}",
       microbatches, all, ranks, axis, mesh.schedule.one_by_one ? more : "");
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
  if (!mesh.schedule.one_by_one)
    refuse("and all of a rank's run in one call: add a strategy that runs them one after another");
  if (how.what < ORR_SHARD_PARAM && !mesh.fast_sums)
    refuse("which only sends gradients here, and only under reduce = \"fast\" of compile");
  if (!assigns_evenly(microbatches, mesh))
    refuse(
        fmt::format("and {} are not the same number on each of the {} ranks that share the batch",
                    microbatches, mesh.batch_ranks()));
}

// A parameter that is cut over a batch axis, such as the experts of a layer, is not sharded: the
// rank that has a part of it computes all of that part's gradient.
void leave_cut_unsharded(Mesh& mesh, Asked& asked) {
  for (const Placing& placing : mesh.placed) {
    if (!has_axis(mesh.batch_axis, placing.axis)) continue;
    for (auto& [name, how] : placing.cuts)
      if (mesh.sharded.erase(name))
        asked.remarks.push_back(fmt::format("{}: the training of '{}' is cut over axis '{}' alone",
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
    p.mutable_value(v).set_varying(with_axis(step.value(state).varying(), mesh.independent_axis));
    p.mutable_value(v).site = step.value(state).site;
  }
  return p;
}

// Sets State::varying of the program's states. Those of a step also vary on `independent_axis`,
// whose coordinates train apart.
void set_varying(const Program& p, const std::string& independent_axis) {
  for (auto& [state, next] : p.updates()) {
    State& s = *p.value(state).state;
    s.varying = with_axis(p.value(state).varying(), independent_axis);
    if (!is_real(s.type.dtype) && s.leave == Leave::mean) s.leave = Leave::first;
  }
}

// Remembers for periodic programs which stages hold each state of the step.
void note_holders(const Program& step, Mesh& mesh) {
  std::map<std::string, std::vector<int>> holders;
  const StageRanks stage_ranks(step, mesh);
  for (auto& [v, ranks] : stage_ranks.holders())
    for (size_t r = ranks.find_first(); r != Ranks::npos; r = ranks.find_next(r))
      holders[step.value(v).name].push_back(static_cast<int>(r));
  mesh.schedule.holders = std::move(holders);
}

// Has a strategy write its periodic programs.
void write_rounds(const Program& step, const Mesh& mesh, Periodic& one) {
  for (int round = 0; round < one.n_rounds; ++round) {
    Program p = over_states(step, mesh);
    p.set_origin(one.origin);
    p.set_site({"", one.line});
    call_hook(one.line, [&] { one.write(p, round); });
    // Names all sharded parameters, also frozen ones, which no update names: where a unit is cut
    // depends on all of its parameters, and must be the same in both programs.
    for (const Value& v : step.values())
      if (v.state && mesh.sharded.count(v.name)) p.state_value(v.state);
    update_copies(p);
    set_varying(p, "");
    group_collectives(p);
    one.rounds.push_back(std::make_shared<const Program>(std::move(p)));
  }
  one.write = nullptr;
}

}  // namespace

bool decides_over_step(const Asked& asked) {
  return std::any_of(asked.completing.begin(), asked.completing.end(),
                     [](const CompleteHook& hook) { return hook.when == CompleteHook::decides; });
}

void complete_step(Program& p, Mesh& mesh, Asked& asked, int64_t microbatches, bool training,
                   const Measured& measured) {
  if (!training) {
    asked.periodic.clear(), asked.driving = {}, mesh.alone = {};
    std::erase_if(asked.completing,
                  [](const CompleteHook& hook) { return hook.when != CompleteHook::last; });
  }
  call_completing(p, mesh, asked, measured);
  check_whole_batch(p, mesh);
  if (!mesh.schedule.axis.empty()) {
    for (Op& op : p.mutable_ops())
      if (op.phase == Phase::update)
        op.stage = static_cast<int32_t>(mesh.schedule.chunk_at.size()) - 1;
    if (!training) follow_states(p, mesh);
    complete_sums(p);
  }
  if (training && !mesh.independent_axis.empty()) sum_independently(p, mesh, microbatches);
  if (asked.driving.on()) write_driven(p, mesh, asked, microbatches, measured.gradients);
  if (mesh.shares.leave_out() && mesh.schedule.one_by_one)
    fail(ORR_INVALID,
         "strategy.{} gives some ranks no microbatches, so microbatches cannot run one after "
         "another: leave out the strategy that orders microbatches",
         mesh.shares.origin);
  if (!mesh.gathered_axis().empty())
    check_gathered(mesh, asked, microbatches), leave_cut_unsharded(mesh, asked);
  if (training) check_each(mesh, microbatches);
  if (!mesh.placed.empty()) order_placings(p, mesh, asked);
  read_copies(p, mesh);
  set_varying(p, mesh.independent_axis);
  group_collectives(p);
  if (!mesh.schedule.axis.empty() && !asked.periodic.empty()) note_holders(p, mesh);
  for (Periodic& one : asked.periodic) write_rounds(p, mesh, one);
  asked.exchanges.clear();
}

}  // namespace orrery
