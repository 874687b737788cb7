// SPDX-License-Identifier: Apache-2.0
#include "run/rounds.h"

#include <utility>

#include "edit/predict.h"
#include "partition/independent.h"
#include "run/compare_kernels.h"

namespace orrery {
namespace {

// The varying states to which the program gives a value that does not vary.
std::set<const State*> made_one_by(const Program& p) {
  std::set<const State*> found;
  for (auto& [state, next] : p.updates())
    if (p.value(next).varying().empty() && !p.value(state).varying().empty())
      found.insert(p.value(state).state.get());
  return found;
}

}  // namespace

void Rounds::make(const Blueprint& step, const RunSpec& spec, int rank, RunStates& states) {
  for (const Periodic& one : step.asked.periodic) {
    InTurns made{one.every, {}, made_one_by(*one.rounds.front())};
    for (const auto& program : one.rounds) {
      std::erase_if(made.made_one,
                    [&, one = made_one_by(*program)](const State* s) { return !one.count(s); });
      const Blueprint b{*program, mesh_of_periodic(step.mesh), {}, step.microbatches};
      for (auto& s : states_of(b.program)) states.remember(s);
      auto variant = std::make_unique<Variant>(b, rank, Runtime::get());
      if (b.mesh.world > 1) compare_kernels(variant->plan(), spec.line);
      const uint64_t bytes = predicted_bytes(variant->plan(), spec.strategies, rank);
      made.rounds.push_back({std::move(variant), bytes});
    }
    periodic_.push_back(std::move(made));
  }
  states.forget_loaded();
}

void Rounds::run_after(int64_t step, const RunSpec& spec, Counters& counters) {
  for (InTurns& one : periodic_) {
    if (step % one.every != 0) continue;
    Round& round = one.rounds[static_cast<size_t>(step / one.every - 1) % one.rounds.size()];
    round.program->set_scalars(spec.scalars ? spec.scalars(step) : std::map<std::string, double>{},
                               step);
    round.program->run();
    counters.planned_bytes_copied += round.program->plan().bytes_copied();
    counters.predicted_bytes_sent += round.predicted;
  }
}

std::set<const State*> Rounds::alike_after(int64_t step) const {
  std::set<const State*> found;
  for (const InTurns& one : periodic_)
    if (step % one.every == 0) found.insert(one.made_one.begin(), one.made_one.end());
  return found;
}

}  // namespace orrery
