// SPDX-License-Identifier: Apache-2.0
//
// Calls by which a strategy in Lua keeps states, exchanges gradients and writes periodic programs.
// Its hooks are tensor code: in them the draft's values are tensors.
#include <map>

#include "lua/strategy_draft.h"

namespace orrery::lua {
namespace {

const Function& hook_of(void* arg) { return *static_cast<Function*>(arg); }

constexpr auto nothing = [](lua_State*, int) {};

orr_status* exchange_hook(void* arg, orr_program* program, const orr_edit* edit, int32_t parameter,
                          int32_t gradient, int32_t* out) {
  return guarded([&] {
    const auto more = [&](lua_State* L) { give(L, parameter), give(L, gradient); };
    *out = call_with_draft(hook_of(arg), program, edit, 1, more, [](lua_State* L, int result) {
      if (!is_tensor(L, result))
        fail(ORR_INVALID, "exchange returns {}, expected a tensor", describe(L, result));
      return value_at(L, result);
    });
  });
}

orr_status* program_hook(void* arg, orr_program* program, const orr_edit* edit, int32_t round) {
  return guarded([&] {
    const auto more = [&](lua_State* L) { push_value(L, round + 1); };
    call_with_draft(hook_of(arg), program, edit, 0, more, nothing);
  });
}

orr_status* complete_hook(void* arg, orr_program* program, const orr_edit* edit, int32_t loss,
                          int32_t norm) {
  return guarded([&] {
    const auto more = [&](lua_State* L) {
      loss == kNone ? lua_pushnil(L) : push_tensor(L, loss);
      norm == kNone ? lua_pushnil(L) : push_tensor(L, norm);
    };
    call_with_draft(hook_of(arg), program, edit, 0, more, nothing);
  });
}

void forget(void* arg) { delete static_cast<Function*>(arg); }

void exchange(Draft& d, const std::string& axis, const Function& hook) {
  const orr_gradient_hook how = {sizeof how, new Function(hook), forget, exchange_hook};
  edit(d, &orr_edit::exchange, axis.c_str(), &how);
}

void every(Draft& d, Count steps, Count rounds, const Function& hook) {
  const orr_program_hook how = {sizeof how, new Function(hook), forget, program_hook};
  edit(d, &orr_edit::every, steps.number, rounds.number, &how);
}

void complete_at(Draft& d, const Function& hook, int32_t when, const std::string& what) {
  const orr_complete_hook how = {sizeof how, when,         new Function(hook),
                                 forget,     what.c_str(), complete_hook};
  edit(d, &orr_edit::complete, &how);
}

void complete(Draft& d, const Function& hook, const std::string& decides) {
  complete_at(d, hook, decides.empty() ? ORR_COMPLETE_STEP : ORR_COMPLETE_DECIDES, decides);
}

void at_last(Draft& d, const Function& hook) { complete_at(d, hook, ORR_COMPLETE_LAST, ""); }

ValueId tensor(Draft&, Id value) { return value; }

const std::map<std::string, int32_t> kInits = {
    {"zeros", ORR_INIT_ZEROS}, {"parameter", ORR_INIT_LIKE}, {"normal", ORR_INIT_NORMAL}};
const std::map<std::string, int32_t> kLeaveRules = {{"mean", ORR_LEAVE_MEAN},
                                                    {"sum", ORR_LEAVE_SUM},
                                                    {"first", ORR_LEAVE_FIRST},
                                                    {"refuse", ORR_LEAVE_REFUSE}};

// Makes a state as `how` says, with the dims of the option `shape` if it is given.
ValueId make_state(Draft& d, orr_state_desc how, const Table& options) {
  const bool own = options.has("shape");
  const Dims shape = own ? options.integers("shape") : Dims{};
  if (own) how.rank = static_cast<int32_t>(shape.size());
  how.dims = shape.data();
  int32_t made = kNone;
  edit(d, &orr_edit::state, &how, &made);
  return made;
}

ValueId state(Draft& d, ValueId parameter, const std::string& name, const Table& options) {
  const std::string varying = options.text("varying");
  orr_state_desc how{};
  how.size = sizeof how, how.name = name.c_str(), how.like = parameter, how.rank = -1;
  how.init = find("init", options.text("init"), kInits), how.varying = varying.c_str();
  how.leave = find("leave", options.text("leave"), kLeaveRules);
  return make_state(d, how, options);
}

ValueId own_state(Draft& d, const std::string& name, const Table& options) {
  orr_state_desc how{};
  how.size = sizeof how, how.name = name.c_str(), how.like = kNone, how.varying = "";
  how.init = ORR_INIT_CONSTANT, how.value = options.number("init");
  how.dtype = options.with("dtype", to_dtype);
  return make_state(d, how, options);
}

void update(Draft& d, ValueId state, ValueId value) { edit(d, &orr_edit::update, state, value); }

ValueId updated(Draft& d, ValueId state) { return d.edit->updated(d.program, state); }

}  // namespace

std::vector<Api> draft_hook_api() {
  return {
      {"Draft:independent(axis: string); Lets the ranks of an axis that deals the batch train "
       "apart: parameters and states vary on it.",
       call<handed<&orr_edit::independent, std::string>>},
      {"Draft:exchange(axis: string, hook: function); Calls hook(draft, parameter, gradient) for "
       "each parameter in place of the gradient's sum over an axis: `gradient` is each rank's "
       "summand of the mean gradient, and the hook returns what all agree on.",
       call<exchange>},
      {"Draft:every(steps: integer, rounds: integer, hook: function); Runs a program after every "
       "so many steps; hook(draft, round) writes each of `rounds`, which take turns, from 1.",
       call<every>},
      {"Draft:tensor(value: value) -> Tensor; A value of the program as a tensor.", call<tensor>},
      {"Draft:state(parameter: Tensor, name: string, options?) -> Tensor; In a hook: a tensor that "
       "the strategy keeps beside a parameter. "
       "@option init: string = 'zeros'; zeros, parameter: what the parameter begins with, or "
       "normal: numbers of N(0, 1) "
       "@option shape?: integers; one of its own instead of the parameter's "
       "@option varying: string = ''; the axis on which each rank has one of its own "
       "@option leave: string = 'mean'; how those become one on another number of ranks: mean, "
       "sum, first or refuse",
       call<state>},
      {"Draft:complete(hook: function, decides: string = ''); Calls hook(draft, loss, norm) once "
       "the update of a training step is written. `decides` names what it decides for all ranks, "
       "\"loss scale\": then it comes after the hooks that decide nothing, and `norm` is the "
       "squared norm of all gradients.",
       call<complete>},
      {"Draft:at_last(hook: function); Calls hook(draft) when all edits of all strategies are "
       "done, "
       "of evaluations too: where parameters that lie in pieces are gathered is written then.",
       call<at_last>},
      {"Draft:own_state(name: string, options?) -> Tensor; A tensor that the strategy keeps for "
       "the whole step. "
       "@option init: number = 0; what it begins with "
       "@option shape?: integers; left out: one number "
       "@option dtype: dtype = 'f32'; of its elements",
       call<own_state>},
      {"Draft:update(state: Tensor, value: Tensor); In a hook: what a parameter or state will hold "
       "afterwards.",
       call<update>},
      {"Draft:updated(state: Tensor) -> Tensor; In a hook: what a parameter or state will hold "
       "afterwards, as far as the program says.",
       call<updated>},
  };
}

}  // namespace orrery::lua
