// SPDX-License-Identifier: Apache-2.0
//
// orrery.world: the ranks of the job and Horovod's words on host tensors, states, lists of them and
// modules. States are changed in place; host tensors give new ones. Size 1 is the identity.
#include <functional>

#include "lua/api.h"
#include "lua/objects.h"
#include "plugin/registry.h"

namespace orrery::lua {
namespace {

using Change = std::function<HostTensor(const HostTensor&)>;

// Applies `change` to argument 2, whatever it holds, and pushes the result.
int apply(lua_State* L, int index, const Change& change) {
  if (const auto* ref = test<StateRef>(L, index)) {
    materialize({ref->state});
    write_state(*ref->state, change(read_state(*ref->state)));
    lua_pushvalue(L, index);
    return 1;
  }
  if (test<Host>(L, index) || lua_type(L, index) == LUA_TNUMBER) {
    push(L, Host{change(host_at(L, index))});
    return 1;
  }
  index = lua_absindex(L, index);
  if (luaL_getmetafield(L, index, "__states") != LUA_TNIL) {
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    lua_replace(L, index);
  }
  if (!lua_istable(L, index)) {
    fail(ORR_INVALID, "{} given, expected a HostTensor, a parameter, a list or a module",
         describe(L, index));
  }
  const auto size = static_cast<lua_Integer>(lua_rawlen(L, index));
  lua_createtable(L, static_cast<int>(size), 0);
  for (lua_Integer i = 1; i <= size; ++i) {
    lua_rawgeti(L, index, i);
    apply(L, lua_gettop(L), change);
    lua_rawseti(L, -3, i);
    lua_pop(L, 1);
  }
  return 1;
}

std::string redop(lua_State* L) {
  const std::string op = option_text(L, 3, "op");
  for (const char* known : {"sum", "mean", "min", "max", "prod"}) {
    if (op == known) return op;
  }
  fail(ORR_INVALID, "op is '{}': one of sum, mean, min, max, prod", op);
}

int allreduce(lua_State* L) {
  const std::string op = redop(L), line = user_line(L);
  return apply(L, 2, [&](const HostTensor& x) { return world_allreduce(x, op, line); });
}

int broadcast(lua_State* L) {
  const auto root = static_cast<int>(option_int(L, 3, "root"));
  const int size = world_info().size;
  if (root < 0 || root >= size) fail(ORR_INVALID, "root is {}: ranks are 0..{}", root, size - 1);
  const std::string line = user_line(L);
  return apply(L, 2, [&](const HostTensor& x) { return world_broadcast(x, root, line); });
}

int allgather(lua_State* L) {
  const std::string line = user_line(L);
  push(L, Host{world_allgather(host_at(L, 2), line)});
  return 1;
}

int reduce_scatter(lua_State* L) {
  push(L, Host{world_reduce_scatter(host_at(L, 2), redop(L), user_line(L))});
  return 1;
}

int alltoall(lua_State* L) {
  push(L, Host{world_alltoall(host_at(L, 2), user_line(L))});
  return 1;
}

int send(lua_State* L) {
  world_send(host_at(L, 2), static_cast<int>(option_int(L, 3, "to")),
             static_cast<int>(option_int(L, 3, "tag")), user_line(L));
  return 0;
}

int recv(lua_State* L) {
  const HostTensor like = host_at(L, 2);
  push(L, Host{world_recv(like.type, static_cast<int>(option_int(L, 3, "from")),
                          static_cast<int>(option_int(L, 3, "tag")), user_line(L))});
  return 1;
}

int barrier(lua_State* L) {
  world_barrier(user_line(L));
  return 0;
}

bool world_properties(lua_State* L, const std::string& key) {
  const WorldInfo info = world_info();
  int value = 0;
  if (key == "rank")
    value = info.rank;
  else if (key == "size")
    value = info.size;
  else if (key == "local_rank")
    value = info.local_rank;
  else if (key == "local_size")
    value = info.local_size;
  else
    return false;
  lua_pushinteger(L, value);
  return true;
}

struct World {
  static constexpr const char* kClass = "World";
};

int world(lua_State* L) {
  push(L, World{});
  return 1;
}

int init(lua_State* L) {
  const std::string comm = option_text(L, 1, "comm");
  if (!comm.empty()) {
    Registry::get().comm(comm);  // throws if there is none of this name
    runtime_options().comm = comm;
  }
  return world(L);
}

int seed(lua_State* L) {
  const lua_Integer seed = lua_tointeger(L, 1);
  runtime_options().seed = static_cast<uint64_t>(seed);
  lua_getglobal(L, "math");
  lua_getfield(L, -1, "randomseed");
  lua_pushinteger(L, seed);
  lua_pushinteger(L, 0);
  lua_call(L, 2, 0);
  return 0;
}

}  // namespace

std::vector<Api> world_api() {
  const Arg self{"self", "any"}, x{"x", "any"}, options{"options", "options", "nil"};
  const Arg op{"op", "string", "'sum'", "sum, mean, min, max or prod"};
  const Arg root{"root", "integer", "0", "rank whose value all get"};
  const Arg tag{"tag", "integer", "0", "tells messages between the same ranks apart"};
  const char* h = "orrery.HostTensor";
  return {
      {"engine", "world", "orrery.World", "The ranks of this job.", world, {}, {}},
      {"orrery",
       "init",
       "orrery.World",
       "Chooses the comm backend; returns the world.",
       init,
       {{"options", "options", "nil"}},
       {{"comm", "string", "''", "name of a comm plugin"}}},
      {"orrery",
       "seed",
       "",
       "Seeds initial values, dropout, sampling, data order and math.random.",
       seed,
       {{"seed", "integer"}},
       {}},
      {"World",
       "allreduce",
       "any",
       "Reduces over all ranks; all get the result.",
       allreduce,
       {self, x, options},
       {op}},
      {"World",
       "broadcast",
       "any",
       "All ranks get the root's value.",
       broadcast,
       {self, x, options},
       {root}},
      {"World",
       "allgather",
       h,
       "All ranks' tensors joined along dim 1, in rank order.",
       allgather,
       {self, x},
       {}},
      {"World",
       "reduce_scatter",
       h,
       "Reduces, then each rank keeps its part of dim 1.",
       reduce_scatter,
       {self, x, options},
       {op}},
      {"World", "alltoall", h, "Part r of dim 1 goes to rank r.", alltoall, {self, x}, {}},
      {"World",
       "send",
       "",
       "Sends to one rank.",
       send,
       {self, x, options},
       {{"to", "integer", nullptr, "rank that receives"}, tag}},
      {"World",
       "recv",
       h,
       "Receives a tensor of the type of `x` from one rank.",
       recv,
       {self, x, options},
       {{"from", "integer", nullptr, "rank that sends"}, tag}},
      {"World", "barrier", "", "Waits until all ranks are here.", barrier, {self}, {}},
  };
}

void define_world_class(lua_State* L) {
  define_class<World>(L, {"World"}, world_properties, {"rank", "size", "local_rank", "local_size"});
  lua_pop(L, 1);
}

}  // namespace orrery::lua
