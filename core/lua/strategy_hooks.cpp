// SPDX-License-Identifier: Apache-2.0
//
// Strategies as tensor code: what a strategy keeps, what becomes of gradients, and programs with a
// clock of their own. Inside of hooks the draft's values are tensors.
#include <map>

#include "lower/edit_table.h"
#include "lua/api.h"
#include "lua/strategy_draft.h"
#include "plugin/host.h"

namespace orrery::lua {
namespace {

// Calls the hook with the draft and `more` further values, as tensor code of the program.
template <class Push, class Take>
void call_hook(const Function& hook, orr_program* program, const orr_edit* edit, Push push_more,
               int n_results, Take take) {
  lua_State* L = hook.state();
  const int top = lua_gettop(L);
  luaL_checkstack(L, 20, "a hook of a strategy");
  Trace trace(L, *program->program);
  Draft& draft = push(L, Draft{program, edit});
  try {
    hook.push();
    lua_pushvalue(L, top + 1);
    const int more = push_more(L);
    protected_call(L, 1 + more, n_results);
    take(L);
  } catch (...) {
    draft.program = nullptr;
    lua_settop(L, top);
    throw;
  }
  draft.program = nullptr;
  lua_settop(L, top);
}

orr_status* exchange_hook(void* arg, orr_program* program, const orr_edit* edit, int32_t parameter,
                          int32_t gradient, int32_t* out) {
  return guarded([&] {
    const auto push_both = [&](lua_State* L) {
      push_tensor(L, parameter);
      push_tensor(L, gradient);
      return 2;
    };
    const auto take = [&](lua_State* L) {
      if (!is_tensor(L, -1))
        fail(ORR_INVALID, "exchange returns {}, expected a tensor", describe(L, -1));
      *out = value_at(L, -1);
    };
    call_hook(*static_cast<Function*>(arg), program, edit, push_both, 1, take);
  });
}

orr_status* program_hook(void* arg, orr_program* program, const orr_edit* edit, int32_t round) {
  return guarded([&] {
    const auto push_round = [&](lua_State* L) {
      lua_pushinteger(L, round + 1);
      return 1;
    };
    call_hook(*static_cast<Function*>(arg), program, edit, push_round, 0, [](lua_State*) {});
  });
}

void forget(void* arg) { delete static_cast<Function*>(arg); }

int exchange(lua_State* L) {
  const Draft& d = open_draft(L);
  const orr_gradient_hook hook = {sizeof hook, new Function(L, 3), forget, exchange_hook};
  orrery::check(d.edit->exchange(d.program, to_text(L, 2, "axis").c_str(), &hook));
  return 0;
}

int independent(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->independent(d.program, to_text(L, 2, "axis").c_str()));
  return 0;
}

int every(lua_State* L) {
  const Draft& d = open_draft(L);
  const orr_program_hook hook = {sizeof hook, new Function(L, 4), forget, program_hook};
  orrery::check(d.edit->every(d.program, static_cast<int32_t>(lua_tointeger(L, 2)),
                              static_cast<int32_t>(lua_tointeger(L, 3)), &hook));
  return 0;
}

orr_status* complete_hook(void* arg, orr_program* program, const orr_edit* edit, int32_t loss,
                          int32_t norm) {
  return guarded([&] {
    const auto push_both = [&](lua_State* L) {
      push_tensor(L, loss);
      norm == kNone ? lua_pushnil(L) : push_tensor(L, norm);
      return 2;
    };
    call_hook(*static_cast<Function*>(arg), program, edit, push_both, 0, [](lua_State*) {});
  });
}

int complete(lua_State* L) {
  const Draft& d = open_draft(L);
  const std::string what = to_text(L, 3, "decides");
  const orr_complete_hook hook = {sizeof hook, what.empty() ? 0 : 1, new Function(L, 2),
                                  forget,      what.c_str(),         complete_hook};
  orrery::check(d.edit->complete(d.program, &hook));
  return 0;
}

int tensor(lua_State* L) {
  open_draft(L);
  push_tensor(L, id_at(L, 2));
  return 1;
}

const std::map<std::string, int32_t> kInits = {
    {"zeros", ORR_INIT_ZEROS}, {"parameter", ORR_INIT_LIKE}, {"normal", ORR_INIT_NORMAL}};
const std::map<std::string, int32_t> kLeaves = {{"mean", ORR_LEAVE_MEAN},
                                                {"sum", ORR_LEAVE_SUM},
                                                {"first", ORR_LEAVE_FIRST},
                                                {"refuse", ORR_LEAVE_REFUSE}};

int state(lua_State* L) {
  const Draft& d = open_draft(L);
  const std::string name = to_text(L, 3, "name"), varying = option_text(L, 4, "varying");
  lua_getfield(L, 4, "shape");
  const bool own = !lua_isnil(L, -1);
  const std::vector<int64_t> shape = own ? to_integers(L, -1, "shape") : std::vector<int64_t>{};
  const orr_state_desc how = {sizeof how,
                              name.c_str(),
                              value_at(L, 2),
                              find("init", option_text(L, 4, "init"), kInits),
                              varying.c_str(),
                              find("leave", option_text(L, 4, "leave"), kLeaves),
                              own ? static_cast<int32_t>(shape.size()) : -1,
                              shape.data(),
                              0,
                              0,
                              0};
  int32_t made = kNone;
  orrery::check(d.edit->state(d.program, &how, &made));
  push_tensor(L, made);
  return 1;
}

int own_state(lua_State* L) {
  const Draft& d = open_draft(L);
  const std::string name = to_text(L, 2, "name");
  lua_getfield(L, 3, "shape");
  const std::vector<int64_t> shape =
      lua_isnil(L, -1) ? std::vector<int64_t>{} : to_integers(L, -1, "shape");
  lua_getfield(L, 3, "dtype");
  orr_state_desc how{};
  how.size = sizeof how, how.name = name.c_str(), how.like = kNone, how.varying = "";
  how.init = ORR_INIT_CONSTANT, how.value = option_real(L, 3, "init");
  how.rank = static_cast<int32_t>(shape.size()), how.dims = shape.data();
  how.dtype = to_dtype(L, lua_gettop(L));
  int32_t made = kNone;
  orrery::check(d.edit->state(d.program, &how, &made));
  push_tensor(L, made);
  return 1;
}

int update(lua_State* L) {
  const Draft& d = open_draft(L);
  const ValueId state = value_at(L, 2), value = value_at(L, 3);
  orrery::check(d.edit->update(d.program, state, value));
  return 0;
}

int updated(lua_State* L) {
  const Draft& d = open_draft(L);
  push_tensor(L, d.edit->updated(d.program, value_at(L, 2)));
  return 1;
}

}  // namespace

std::vector<Api> draft_hook_api() {
  const Arg self = {"self", "Draft"}, on = {"axis", "string"};
  const char* one = "orrery.Tensor";
  return {
      {"Draft",
       "independent",
       "",
       "Lets the ranks of an axis that deals the batch train apart: parameters and states vary on "
       "it.",
       independent,
       {self, on},
       {}},
      {"Draft",
       "exchange",
       "",
       "Calls hook(draft, parameter, gradient) for each parameter in place of the gradient's sum "
       "over an axis: `gradient` is each rank's summand of the mean gradient, and the hook returns "
       "what all agree on.",
       exchange,
       {self, on, {"hook", "function"}},
       {}},
      {"Draft",
       "every",
       "",
       "Runs a program after every so many steps; hook(draft, round) writes each of `rounds`, "
       "which take turns, from 1.",
       every,
       {self, {"steps", "integer"}, {"rounds", "integer"}, {"hook", "function"}},
       {}},
      {"Draft",
       "tensor",
       one,
       "A value of the program as a tensor.",
       tensor,
       {self, {"value", "value"}},
       {}},
      {"Draft",
       "state",
       one,
       "In a hook: a tensor that the strategy keeps beside a parameter.",
       state,
       {self, {"parameter", "tensor"}, {"name", "string"}, {"options", "options", "nil"}},
       {{"init", "string", "'zeros'",
         "zeros, parameter: what the parameter begins with, or normal: numbers of N(0, 1)"},
        {"shape", "integers", "nil", "one of its own instead of the parameter's"},
        {"varying", "string", "''", "the axis on which each rank has one of its own"},
        {"leave", "string", "'mean'",
         "how those become one on another number of ranks: mean, sum, first or refuse"}}},
      {"Draft",
       "complete",
       "",
       "Calls hook(draft, loss, norm) once the update of a training step is written. `decides` "
       "names what it decides for all ranks, \"loss scale\": then it comes after the hooks that "
       "decide nothing, and `norm` is the squared norm of all gradients.",
       complete,
       {self, {"hook", "function"}, {"decides", "string", "''"}},
       {}},
      {"Draft",
       "own_state",
       one,
       "A tensor that the strategy keeps for the whole step.",
       own_state,
       {self, {"name", "string"}, {"options", "options", "nil"}},
       {{"init", "number", "0", "what it begins with"},
        {"shape", "integers", "nil", "left out: one number"},
        {"dtype", "dtype", "'f32'", "of its elements"}}},
      {"Draft",
       "update",
       "",
       "In a hook: what a parameter or state will hold afterwards.",
       update,
       {self, {"state", "tensor"}, {"value", "tensor"}},
       {}},
      {"Draft",
       "updated",
       one,
       "In a hook: what a parameter or state will hold afterwards, as far as the program says.",
       updated,
       {self, {"state", "tensor"}},
       {}},
  };
}

}  // namespace orrery::lua
