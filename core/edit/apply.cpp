// SPDX-License-Identifier: Apache-2.0
//
// A stack of strategies, applied in order. Of a stack of two, `transform` of the first may place
// the batch fields over an axis that it makes, and ask that gradients are summed over that axis;
// that of the second may ask that states are sharded over it. Both only edit the program and the
// mesh: lowering carries out what they ask (lower/lower.cpp).
#include <algorithm>

#include "base/error.h"
#include "edit/calls.h"
#include "edit/contract.h"
#include "edit/edit_table.h"
#include "partition/cut_program.h"
#include "partition/independent.h"
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

// Calls one entry of every strategy's table.
template <class Entry>
void call_each(Program& p, Mesh& mesh, Asked& asked, const std::vector<StrategyUse>& stack,
               StrategyStates& states, bool training, Entry entry) {
  std::map<std::string, std::string> provided;
  for (const StrategyUse& use : stack) {
    call_hook(use.line, [&] {
      const orr_strategy_api& api = strategy_of(use);
      const orr_strategy_info info = described(use);
      check_options(use, info);
      check_contract(use, info, stack, provided);
      const bool forward = entry == &orr_strategy_api::transform_forward;
      orr_program edited{&p, &mesh, &asked, use.name, &use, &states, forward, training};
      orr_options options = options_of(use);
      p.set_origin(use.name);
      check_edits((api.*entry)(api.self, &edited, &edit_table, &options), use);
      p.set_origin("");
      settle(edited);
    });
  }
}

// By op: the new ops that the strategy has asked to be put right before it.
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

// Remembers how the training step has cut parameters.
void note_cuts(const Program& p, const Mesh& mesh, StrategyStates& states) {
  for (const Placing& placing : mesh.placed)
    for (const Value& v : p.values()) {
      if (v.role != Role::param) continue;
      const auto asked = placing.cuts.find(v.name);
      auto& known = states.cuts[placing.axis][v.name];
      known = asked == placing.cuts.end() ? std::nullopt : std::optional(asked->second);
    }
}

// Cuts the parameters of an evaluation as the training step has cut them. A strategy that chooses
// layers by their ops may choose others in an evaluation, where a layer may have other ops: a
// batchnorm has no sums over the batch there.
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

void apply_forward(Program& p, const std::vector<StrategyUse>& stack, StrategyStates& states,
                   Asked& asked, bool training) {
  Mesh mesh;  // there are no ranks yet
  call_each(p, mesh, asked, stack, states, training, &orr_strategy_api::transform_forward);
}

void apply_strategies(Program& p, const std::vector<StrategyUse>& stack, int world,
                      StrategyStates& states, Mesh& mesh, Asked& asked, bool training) {
  mesh.world = world;
  call_each(p, mesh, asked, stack, states, training, &orr_strategy_api::transform);
  if (training)
    note_cuts(p, mesh, states);
  else
    follow_cuts(mesh, states);
  check_taken(mesh);
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
