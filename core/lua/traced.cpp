// SPDX-License-Identifier: Apache-2.0
#include "lua/traced.h"

#include <algorithm>

#include "base/error.h"
#include "lua/layer.h"

namespace orrery::lua {
namespace {

// By value: whether it would get a gradient from `loss`.
std::vector<char> moving(const Program& p, ValueId loss) {
  std::vector<char> moves(p.values().size());
  moves[static_cast<size_t>(loss)] = 1;
  for (auto op = p.ops().rbegin(); op != p.ops().rend(); ++op) {
    const bool reached = std::any_of(op->out.begin(), op->out.end(),
                                     [&](ValueId v) { return moves[static_cast<size_t>(v)]; });
    if (!reached || op->kind == "stop_gradient") continue;
    // A gradient that the user defines does not flow into the value that it is defined for.
    const size_t first = op->kind == "user_gradient" ? 1 : 0;
    for (size_t i = first; i < op->in.size(); ++i) moves[static_cast<size_t>(op->in[i])] = 1;
  }
  return moves;
}

// Whether the script's line, such as "f.lua:7", compares an expression with a number.
bool compares_with_number(lua_State* L, const std::string& place) {
  push_library(L, "orrery.conditions", "compares_with_number");
  push_text(L, place);
  lua_call(L, 1, 1);  // an error passes, so nothing here may take its message off the stack
  const bool compares = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return compares;
}

// Whether the op was made again for the samples that read it (program/own_rows.h).
bool is_made_again(const Program& p, OpId id, const std::vector<char>& used) {
  const Op& op = p.ops()[static_cast<size_t>(id)];
  return std::any_of(p.ops().begin() + id + 1, p.ops().end(), [&](const Op& other) {
    return other.kind == op.kind && used[static_cast<size_t>(other.out[0])] &&
           p.value(other.out[0]).batch() == Batch::sharded && other.site.line == op.site.line &&
           p.type(other.out[0]) == p.type(op.out[0]) &&
           other.expr.instrs.size() == op.expr.instrs.size() &&
           other.expr.instrs.back().fn == op.expr.instrs.back().fn;
  });
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

void refuse_unused_conditions(lua_State* L, const Program& program, size_t first,
                              const std::vector<ValueId>& results) {
  std::vector<char> used(program.values().size());
  for (size_t i = first; i < program.ops().size(); ++i)
    for (ValueId v : program.ops()[i].in) used[static_cast<size_t>(v)] = 1;
  for (ValueId v : results) used[static_cast<size_t>(v)] = 1;
  for (auto& [state, next] : program.updates()) used[static_cast<size_t>(next)] = 1;
  for (auto& [name, watched] : program.outputs()) used[static_cast<size_t>(watched)] = 1;
  for (size_t i = first; i < program.ops().size(); ++i) {
    const Op& op = program.ops()[i];
    // An op with a twin belongs to a derivative, and is no condition of the script.
    if (op.kind != "pointwise" || op.twin != kNone || used[static_cast<size_t>(op.out[0])])
      continue;
    const bool boolean = program.type(op.out[0]).dtype == ORR_BOOL;
    if (!boolean && !compares_with_number(L, op.site.line)) continue;
    const bool one_for_all = program.value(op.out[0]).batch() == Batch::none;
    if (one_for_all && is_made_again(program, static_cast<OpId>(i), used)) continue;
    fail(ORR_INVALID,
         "{}nothing uses the tensor that '{}' gives here: Lua's if, and, or, not and == cannot ask "
         "it, as it has no numbers while the function is traced; choose with "
         "orrery.where(condition, a, b)",
         op.site.prefix(), scalar_fn(op.expr.instrs.back().fn).name);
  }
}

}  // namespace orrery::lua
