// SPDX-License-Identifier: Apache-2.0
//
// Collectives on all values that hold tensors: a HostTensor, a state, numbers and nested lists of
// them, a list of tensors, a module. If all ranks get the same result, states change in place; else
// new tensors are made.
#include "lua/call.h"
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

// Replaces a module by the list of its states.
void open_module(lua_State* L, int index) {
  if (luaL_getmetafield(L, index, "__states") == LUA_TNIL) return;
  lua_pushvalue(L, index);
  lua_call(L, 1, 1);
  lua_replace(L, index);
}

// Calls each(index) for each tensor in the value on top of the stack, in order; `each` may replace
// the tensor. In the value, modules are replaced by their lists of states, and lists by copies.
template <class Each>
void for_tensors(lua_State* L, Each&& each) {
  const int index = lua_gettop(L);
  luaL_checkstack(L, 8, "too deeply nested");
  open_module(L, index);
  if (!is_list(L, index)) return each(index);
  const auto size = static_cast<lua_Integer>(lua_rawlen(L, index));
  lua_createtable(L, static_cast<int>(size), 0);
  for (lua_Integer i = 1; i <= size; ++i) {
    lua_rawgeti(L, index, i);
    for_tensors(L, each);
    lua_rawseti(L, -2, i);
  }
  lua_replace(L, index);
}

std::vector<HostTensor> tensors_of(lua_State* L) {
  std::vector<HostTensor> tensors;
  for_tensors(L, [&](int index) {
    if (const auto* ref = test<StateRef>(L, index)) {
      materialize({ref->state});
      tensors.push_back(read_state(*ref->state));
    } else if (test<Host>(L, index) || lua_istable(L, index) || lua_type(L, index) == LUA_TNUMBER) {
      tensors.push_back(host_at(L, index));
    } else {
      fail(ORR_INVALID,
           "{} given, expected a HostTensor, a parameter, numbers, a list of them or a module",
           describe(L, index));
    }
  });
  return tensors;
}

// Replaces the tensors in the value on top of the stack, which tensors_of has made, by those of the
// result.
void put_back(lua_State* L, Collective kind, const std::vector<HostTensor>& tensors) {
  size_t next = 0;
  for_tensors(L, [&](int index) {
    const HostTensor& value = tensors[next++];
    const auto* ref = test<StateRef>(L, index);
    if (ref && changes_states(kind)) return give_state(ref->state, value, user_line(L));
    push(L, Host{value});
    lua_replace(L, index);
  });
}

// Waits for the collective, and pushes its result for the value on top of the stack.
Pushed answer(lua_State* L, const PostedCollective& posted, Collective kind) {
  const CollectiveResult& answer = posted.wait();
  put_back(L, kind, answer.tensors);
  if (kind != Collective::alltoall) return {1};
  push_list(L, answer.splits);
  return {2};
}

void read_options(const Table& options, CollectiveCall& call) {
  call.name = options.text("name");
  if (call.kind == Collective::allreduce || call.kind == Collective::reduce_scatter)
    call.op = options.text("op");
  if (runtime_options().plan_only) return;  // there are no other ranks to compare with
  if (call.kind == Collective::broadcast) call.root = static_cast<int>(options.integer("root"));
  if (call.kind == Collective::alltoall && options.has("splits"))
    call.splits = options.integers("splits");
}

template <Collective kind, bool async>
Pushed call_collective(lua_State* L, World& self, Index x, const Table& options) {
  CollectiveCall call = call_of(L, self, kind);
  read_options(options, call);
  lua_pushvalue(L, x);
  call.tensors = tensors_of(L);
  if (kind == Collective::alltoall && is_list(L, -1))
    fail(ORR_INVALID, "alltoall takes one tensor, not a list");
  const PostedCollective posted = post(Runtime::get().comm(), std::move(call));
  if (!async) return answer(L, posted, kind);
  push(L, Handle{posted, kind, Function(L, -1)});
  return {1};
}

Pushed wait(lua_State* L, Handle& handle) {
  handle.argument.push();
  return answer(L, handle.posted, handle.kind);
}

bool poll(Handle& handle) { return handle.posted.done(); }

// All ranks' bytes, one after another.
std::string gather_bytes(lua_State* L, World& world, const std::string& bytes,
                         const std::string& name) {
  HostTensor mine = HostTensor::make({ORR_U8, {static_cast<int64_t>(bytes.size())}});
  std::copy(bytes.begin(), bytes.end(), mine.data<char>());  // not memcpy: bytes may be empty
  CollectiveCall call = call_of(L, world, Collective::allgather);
  call.tensors = {mine};
  call.name = name;
  const HostTensor all = post(Runtime::get().comm(), std::move(call)).wait().tensors.front();
  return {all.data<char>(), all.bytes->size()};
}

// The rows of a collective and of its asynchronous form.
template <Collective kind>
void add(std::vector<Api>& rows, const std::string& name, const std::string& declared) {
  const std::string options =
      " @option name: string = ''; for messages; all ranks must give the same";
  const std::string own =
      declared.find(" @") == declared.npos ? "" : declared.substr(declared.find(" @"));
  rows.emplace_back(fmt::format("World:{}(x: any, options?) -> {}{}", name, declared, options),
                    call<call_collective<kind, false>>);
  rows.emplace_back(fmt::format("World:{}_async(x: any, options?) -> Handle; The same without "
                                "waiting: handle:wait() gives the result.{}{}",
                                name, own, options),
                    call<call_collective<kind, true>>);
}

}  // namespace

std::vector<Api> collective_api() {
  const std::string op = " @option op: string = 'sum'; sum, mean, min, max or prod";
  std::vector<Api> rows;
  add<Collective::allreduce>(rows, "allreduce",
                             "any; Reduces over all ranks; all get the result." + op);
  add<Collective::broadcast>(
      rows, "broadcast",
      "any; All ranks get the root's value. @option root: integer = 0; rank whose "
      "value all get");
  add<Collective::allgather>(
      rows, "allgather",
      "any; All ranks' tensors joined along dim 1, in rank order; dim 1 may differ.");
  add<Collective::reduce_scatter>(
      rows, "reduce_scatter",
      "any; Reduces, then each rank keeps its part of dim 1; the first may "
      "have one row more." +
          op);
  add<Collective::alltoall>(
      rows, "alltoall",
      "orrery.HostTensor, integer[]; Part r of dim 1 goes to rank r; the rows that "
      "came from each rank, too. @option splits?: integers; rows for each rank; "
      "left out: equal parts");
  rows.emplace_back("Handle:wait() -> any; Waits for the call and returns its result.", call<wait>);
  rows.emplace_back("Handle:poll() -> boolean; Whether wait() would return at once.", call<poll>);
  rows.emplace_back(
      "engine.gather_bytes(world: World, bytes: string, name: string) -> string; All ranks' bytes, "
      "one after another.",
      call<gather_bytes>);
  return rows;
}

}  // namespace orrery::lua
