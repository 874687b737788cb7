// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "partition/stage.h"
#include "partition/stage_ranks.h"
#include "program/state.h"

namespace orrery {
namespace {

// The last chunk that holds the state and may run the op, or the op's own.
int32_t chunk_for(const Program& p, const Mesh& mesh, const Op& op, const State& state) {
  const Ranks holders = holders_before(state, mesh);
  int32_t first = 0;
  for (ValueId v : op.in)
    if (const OpId maker = p.value(v).producer; maker != kNone)
      first = std::max(first, p.ops()[static_cast<size_t>(maker)].stage);
  for (int32_t c = op.stage; c >= first; --c)
    if (holders.test(static_cast<size_t>(mesh.chunk_at[static_cast<size_t>(c)]))) return c;
  return op.stage;
}

// Refuses states that an op reads on a stage which does not hold them. Every rank sees that here;
// later one alone would miss the state, and the others wait for it.
void check_held(const Program& p, const Mesh& mesh) {
  const StageRanks ranks(p, mesh);
  for (size_t i = 0; i < p.ops().size(); ++i) {
    const Op& op = p.ops()[i];
    if (ranks.is_late(i) || ranks.run_at(i).none()) continue;
    for (ValueId v : op.in) {
      const auto& state = p.value(v).state;
      if (!state || !state->bound || state->type.elements() == 0) continue;
      const Ranks held = holders_before(*state, mesh);
      if (!ranks.run_at(i).is_subset_of(held))
        fail(ORR_INVALID,
             "{}'{}' is read on coordinate {} of axis '{}' and lies on {} since a program was "
             "compiled before: let training read it there, too, or put both readers into one chunk "
             "of the model",
             op.site.prefix(), state->name, ranks.run_at(i).find_first(), mesh.pipe_axis,
             held.find_first());
    }
  }
}

}  // namespace

void follow_states(Program& p, const Mesh& mesh) {
  for (Op& op : p.mutable_ops())
    for (ValueId v : op.in)
      if (const auto& state = p.value(v).state; state && state->bound)
        op.stage = chunk_for(p, mesh, op, *state);
  check_held(p, mesh);
}

}  // namespace orrery
