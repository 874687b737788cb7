// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "partition/stage.h"
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
    if (holders.test(static_cast<size_t>(mesh.schedule.chunk_at[static_cast<size_t>(c)]))) return c;
  return op.stage;
}

}  // namespace

void follow_states(Program& p, const Mesh& mesh) {
  for (Op& op : p.mutable_ops())
    for (ValueId v : op.in)
      if (const auto& state = p.value(v).state; state && state->bound)
        op.stage = chunk_for(p, mesh, op, *state);
}

}  // namespace orrery
