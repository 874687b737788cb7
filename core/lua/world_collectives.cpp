// SPDX-License-Identifier: Apache-2.0
//
// Collectives on lists of tensors, of which scripts/orrery/world_collectives.lua makes those of a
// World.
#include "lua/call.h"
#include "lua/world.h"
#include "run/runtime.h"

namespace orrery::lua {
namespace {

HostTensor tensor_at(lua_State* L, int index) {
  if (const auto* ref = test<StateRef>(L, index)) {
    materialize({ref->state});
    return read_state(*ref->state);
  }
  if (test<Host>(L, index) || lua_istable(L, index) || lua_type(L, index) == LUA_TNUMBER)
    return host_at(L, index);
  fail(ORR_INVALID,
       "{} given, expected a HostTensor, a parameter, numbers, a list of them or a module",
       describe(L, index));
}

Collective kind_of(const std::string& name) {
  for (Collective kind : {Collective::allreduce, Collective::broadcast, Collective::allgather,
                          Collective::reduce_scatter})
    if (name == collective_name(kind)) return kind;
  return Collective::alltoall;
}

void read_options(const Table& options, CollectiveCall& call) {
  call.name = options.text("name");
  if (options.has("op")) call.op = options.text("op");
  if (runtime_options().plan_only) return;  // there are no other ranks to compare with
  if (options.has("root")) call.root = static_cast<int>(options.integer("root"));
  if (options.has("splits")) call.splits = options.integers("splits");
}

Handle post_tensors(lua_State* L, World& world, const std::string& kind, Index tensors,
                    const Table& options) {
  CollectiveCall call = call_of(L, world, kind_of(kind));
  read_options(options, call);
  call.tensors = list_at(L, tensors, tensor_at);
  return {post(Runtime::get().comm(), std::move(call))};
}

Pushed await(lua_State* L, Handle& handle) {
  const CollectiveResult& result = handle.posted.wait();
  push_list(L, result.tensors, [](lua_State* to, const HostTensor& x) { push(to, Host{x}); });
  push_list(L, result.splits);
  return {2};
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

}  // namespace

std::vector<Api> collective_api() {
  return {
      {"Handle:poll() -> boolean; Whether wait() would return at once.", call<poll>},
      {"engine.post(world: World, kind: string, tensors: table, options: table) -> Handle; Begins "
       "a collective on a list of tensors.",
       call<post_tensors>},
      {"engine.await(handle: Handle) -> table, integer[]; Waits for it: the list of tensors, and "
       "of an alltoall the rows from each rank.",
       call<await>},
      {"engine.gather_bytes(world: World, bytes: string, name: string) -> string; All ranks' "
       "bytes, one after another.",
       call<gather_bytes>},
  };
}

}  // namespace orrery::lua
