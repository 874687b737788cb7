// SPDX-License-Identifier: Apache-2.0
#include "lua/traced.h"

#include <algorithm>

#include "base/error.h"

namespace orrery::lua {
namespace {

// For each value whether a change of it would reach `loss` through gradients.
std::vector<char> moving(const Program& p, ValueId loss) {
  std::vector<char> moves(p.values().size());
  moves[static_cast<size_t>(loss)] = 1;
  for (auto op = p.ops().rbegin(); op != p.ops().rend(); ++op) {
    const bool reached = std::any_of(op->out.begin(), op->out.end(),
                                     [&](ValueId v) { return moves[static_cast<size_t>(v)]; });
    if (!reached || op->kind == "stop_gradient") continue;
    // A gradient of the user's own goes past the value it was given for.
    const size_t first = op->kind == "user_gradient" ? 1 : 0;
    for (size_t i = first; i < op->in.size(); ++i) moves[static_cast<size_t>(op->in[i])] = 1;
  }
  return moves;
}

}  // namespace

void refuse_untrained(const Program& program, ValueId loss,
                      const std::vector<std::shared_ptr<State>>& model) {
  const std::vector<char> moves = moving(program, loss);
  for (size_t i = 0; i < moves.size(); ++i) {
    const Value& value = program.values()[i];
    if (!moves[i] || value.role != Role::param || !value.state) continue;
    if (value.state->frozen || value.state->trained) continue;
    if (std::find(model.begin(), model.end(), value.state) != model.end()) continue;
    fail(ORR_INVALID,
         "{}the loss reads parameter '{}' {}, made at {}, which 'params' does not hold, so that it "
         "would never be trained: keep its layer as a part of its module (m.name = ...), put it "
         "into params, or leave it as it is with nn.freeze",
         value.site.prefix(), value.name, to_string(value.type), value.state->site.line);
  }
}

}  // namespace orrery::lua
