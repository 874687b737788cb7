// SPDX-License-Identifier: Apache-2.0
//
// Collectives on whatever holds tensors: a HostTensor, a state, numbers and nested lists of them, a
// list of tensors, a module. States change in place where all ranks get the same; else tensors are
// made new.
#include "lua/api.h"
#include "lua/objects.h"
#include "lua/world.h"
#include "run/replicas.h"
#include "run/runtime.h"

namespace orrery::lua {
namespace {

bool changes_states(Collective kind) {
  return kind == Collective::allreduce || kind == Collective::broadcast;
}

// Whether a table is a nested list of numbers, which is a tensor.
bool is_numbers(lua_State* L, int index, int depth = 1) {
  if (depth > ORR_MAX_RANK)
    fail(ORR_INVALID, "a list is nested deeper than {} levels, or contains itself",
         static_cast<int>(ORR_MAX_RANK));
  index = lua_absindex(L, index);
  luaL_checkstack(L, 4, "too deeply nested");
  lua_rawgeti(L, index, 1);
  const bool numbers =
      lua_istable(L, -1) ? is_numbers(L, -1, depth + 1) : lua_type(L, -1) == LUA_TNUMBER;
  lua_pop(L, 1);
  return numbers;
}

bool is_list(lua_State* L, int index) { return lua_istable(L, index) && !is_numbers(L, index); }

// Puts the list of a module's states in its place.
void open_module(lua_State* L, int index) {
  if (luaL_getmetafield(L, index, "__states") == LUA_TNIL) return;
  lua_pushvalue(L, index);
  lua_call(L, 1, 1);
  lua_replace(L, index);
}

// Appends the tensors of the value on top, in order, and leaves it there with modules opened.
void collect(lua_State* L, std::vector<HostTensor>& tensors) {
  open_module(L, lua_gettop(L));
  const int index = lua_gettop(L);
  if (const auto* ref = test<StateRef>(L, index)) {
    materialize({ref->state});
    tensors.push_back(read_state(*ref->state));
  } else if (is_list(L, index)) {
    const auto size = static_cast<lua_Integer>(lua_rawlen(L, index));
    lua_createtable(L, static_cast<int>(size), 0);
    for (lua_Integer i = 1; i <= size; ++i) {
      lua_rawgeti(L, index, i);
      collect(L, tensors);
      lua_rawseti(L, -2, i);
    }
    lua_replace(L, index);
  } else if (test<Host>(L, index) || lua_istable(L, index) || lua_type(L, index) == LUA_TNUMBER) {
    tensors.push_back(host_at(L, index));
  } else {
    fail(ORR_INVALID,
         "{} given, expected a HostTensor, a parameter, numbers, a list of them or a module",
         describe(L, index));
  }
}

// Replaces the value on top, made by `collect`, by the same of the answer's tensors.
void put_back(lua_State* L, Collective kind, const std::vector<HostTensor>& tensors, size_t& next) {
  const int index = lua_gettop(L);
  if (is_list(L, index)) {
    const auto size = static_cast<lua_Integer>(lua_rawlen(L, index));
    lua_createtable(L, static_cast<int>(size), 0);
    for (lua_Integer i = 1; i <= size; ++i) {
      lua_rawgeti(L, index, i);
      put_back(L, kind, tensors, next);
      lua_rawseti(L, -2, i);
    }
    lua_replace(L, index);
    return;
  }
  const HostTensor& value = tensors[next++];
  const auto* ref = test<StateRef>(L, index);
  if (ref && changes_states(kind)) return give_state(ref->state, value, user_line(L));
  push(L, Host{value});
  lua_replace(L, index);
}

// Waits; pushes what the collective gives to the value on top.
int answer(lua_State* L, const PostedCollective& posted, Collective kind) {
  const CollectiveResult& answer = posted.wait();
  size_t next = 0;
  put_back(L, kind, answer.tensors, next);
  if (kind != Collective::alltoall) return 1;
  lua_createtable(L, static_cast<int>(answer.splits.size()), 0);
  for (size_t r = 0; r < answer.splits.size(); ++r) {
    lua_pushinteger(L, answer.splits[r]);
    lua_rawseti(L, -2, static_cast<lua_Integer>(r) + 1);
  }
  return 2;
}

void read_options(lua_State* L, CollectiveCall& call) {
  call.name = option_text(L, 3, "name");
  if (call.kind == Collective::allreduce || call.kind == Collective::reduce_scatter)
    call.op = option_text(L, 3, "op");
  if (runtime_options().plan_only) return;  // alone: the others' ranks and parts are not there
  if (call.kind == Collective::broadcast) call.root = static_cast<int>(option_int(L, 3, "root"));
  if (call.kind == Collective::alltoall) {
    lua_getfield(L, 3, "splits");
    if (!lua_isnil(L, -1)) call.splits = to_integers(L, -1, "splits");
    lua_pop(L, 1);
  }
}

template <Collective kind, bool async>
int say(lua_State* L) {
  CollectiveCall call = call_at(L, kind);
  read_options(L, call);
  lua_pushvalue(L, 2);
  collect(L, call.tensors);
  if (kind == Collective::alltoall && is_list(L, -1))
    fail(ORR_INVALID, "alltoall takes one tensor, not a list");
  const PostedCollective posted = post(Runtime::get().comm(), std::move(call));
  if (!async) return answer(L, posted, kind);
  push(L, Handle{posted, kind, Function(L, -1)});
  return 1;
}

int wait(lua_State* L) {
  const Handle& handle = check<Handle>(L, 1);
  handle.argument.push();
  return answer(L, handle.posted, handle.kind);
}

int poll(lua_State* L) {
  lua_pushboolean(L, check<Handle>(L, 1).posted.done());
  return 1;
}

// A collective and its async form.
template <Collective kind>
void add(std::vector<Api>& rows, const char* name, const char* async_name, const char* returns,
         const char* doc, std::vector<Arg> options) {
  const std::vector<Arg> args = {{"self", "World"}, {"x", "any"}, {"options", "options", "nil"}};
  options.push_back({"name", "string", "''", "for messages; all ranks must give the same"});
  rows.push_back({"World", name, returns, doc, say<kind, false>, args, options});
  rows.push_back({"World", async_name, "orrery.Handle",
                  "The same without waiting: handle:wait() gives the result.", say<kind, true>,
                  args, options});
}

}  // namespace

std::vector<Api> collective_api() {
  const Arg op{"op", "string", "'sum'", "sum, mean, min, max or prod"};
  std::vector<Api> rows;
  add<Collective::allreduce>(rows, "allreduce", "allreduce_async", "any",
                             "Reduces over all ranks; all get the result.", {op});
  add<Collective::broadcast>(rows, "broadcast", "broadcast_async", "any",
                             "All ranks get the root's value.",
                             {{"root", "integer", "0", "rank whose value all get"}});
  add<Collective::allgather>(
      rows, "allgather", "allgather_async", "any",
      "All ranks' tensors joined along dim 1, in rank order; dim 1 may differ.", {});
  add<Collective::reduce_scatter>(
      rows, "reduce_scatter", "reduce_scatter_async", "any",
      "Reduces, then each rank keeps its part of dim 1; the first may have one row more.", {op});
  add<Collective::alltoall>(
      rows, "alltoall", "alltoall_async", "orrery.HostTensor, integer[]",
      "Part r of dim 1 goes to rank r; the rows that came from each rank, too.",
      {{"splits", "integers", "nil", "rows for each rank; left out: equal parts"}});
  const std::vector<Arg> handle = {{"self", "Handle"}};
  rows.push_back(
      {"Handle", "wait", "any", "Waits for the word and returns what it gives.", wait, handle, {}});
  rows.push_back(
      {"Handle", "poll", "boolean", "Whether wait() would return at once.", poll, handle, {}});
  return rows;
}

}  // namespace orrery::lua
