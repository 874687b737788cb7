// SPDX-License-Identifier: Apache-2.0
//
// orrery.world: the ranks of the job, groups of them, and the collectives that are no collective on
// tensors.
#include "lua/world.h"

#include <algorithm>

#include "base/text.h"
#include "lua/api.h"
#include "lua/objects.h"
#include "plugin/registry.h"
#include "run/runtime.h"

namespace orrery::lua {
namespace {

WorldComm& comm() { return Runtime::get().comm(); }

int size_of(const World& world) {
  return world.ranks.empty() ? world_info().size : static_cast<int>(world.ranks.size());
}

std::string text_of(const World& world) {
  if (world.ranks.empty()) return "world";
  std::vector<std::string> numbers;
  for (int r : world.ranks) numbers.push_back(std::to_string(r));
  return "world:group{" + join(numbers, ", ") + "}";
}

std::vector<int> members_at(lua_State* L, int index) {
  std::vector<int> ranks;
  for (int64_t r : to_integers(L, index, "ranks")) {
    if (r < 0 || r >= world_info().size)
      fail(ORR_INVALID, "group: there is no rank {}: ranks are 0..{}", r, world_info().size - 1);
    ranks.push_back(static_cast<int>(r));
  }
  std::sort(ranks.begin(), ranks.end());
  if (ranks.empty()) fail(ORR_INVALID, "group: the list of ranks is empty");
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end()) fail(ORR_INVALID, "group: rank {} is named twice", *twice);
  return ranks;
}

// All ranks make it together; those that name other members are told before they part.
int group(lua_State* L) {
  if (!check<World>(L, 1).ranks.empty())
    fail(ORR_INVALID, "{}:group: groups are made of the world, not of groups",
         text_of(check<World>(L, 1)));
  World made{0, members_at(L, 2)};
  CollectiveCall call = call_at(L, Collective::barrier);
  call.name = text_of(made);
  post(comm(), std::move(call)).wait();
  const bool member = std::count(made.ranks.begin(), made.ranks.end(), world_info().rank) > 0;
  made.group = comm().split(member ? 0 : -1, world_info().rank);
  push(L, std::move(made));
  return 1;
}

int barrier(lua_State* L) {
  post(comm(), call_at(L, Collective::barrier)).wait();
  return 0;
}

int join_in(lua_State* L) {
  lua_pushinteger(L, post(comm(), call_at(L, Collective::join)).wait().last);
  return 1;
}

Route route_at(lua_State* L, const char* peer) {
  return {static_cast<int>(option_int(L, 3, peer)), static_cast<int>(option_int(L, 3, "tag")),
          world_at(L).group, user_line(L)};
}

// What one rank can read of itself: the value of argument 2, a parameter's among them.
HostTensor own_value(lua_State* L) {
  const auto* ref = test<StateRef>(L, 2);
  if (!ref) return host_at(L, 2);
  materialize({ref->state});
  if (!ref->state->parts.empty())
    fail(
        ORR_INVALID,
        "send: '{}' is held in parts by the ranks, which only all of them can read together: write "
        "local w = p:read() on all ranks, and send w",
        ref->state->name);
  return read_state(*ref->state);
}

int send(lua_State* L) {
  const Route to = route_at(L, "to");
  if (!runtime_options().plan_only) send_tensor(comm(), own_value(L), to);
  return 0;
}

int recv(lua_State* L) {
  const Route from = route_at(L, "from");
  const auto* ref = test<StateRef>(L, 2);
  const HostTensor like = ref ? HostTensor::make(ref->state->type) : host_at(L, 2);
  push(L, Host{runtime_options().plan_only ? like : recv_tensor(comm(), like.type, from)});
  return 1;
}

int show(lua_State* L) {
  const World& world = check<World>(L, 1);
  push_text(L, fmt::format("World {} of {} ranks", text_of(world), size_of(world)));
  return 1;
}

bool world_properties(lua_State* L, const std::string& key) {
  const World& world = check<World>(L, 1);
  if (key == "rank") {
    const int rank = world.ranks.empty() ? world_info().rank : comm().rank(world.group);
    rank < 0 ? lua_pushnil(L) : lua_pushinteger(L, rank);
  } else if (key == "size") {
    lua_pushinteger(L, size_of(world));
  } else if (key == "local_rank") {
    lua_pushinteger(L, world_info().local_rank);
  } else if (key == "local_size") {
    lua_pushinteger(L, world_info().local_size);
  } else {
    return false;
  }
  return true;
}

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
  ordinals().begin_anew();
  lua_getglobal(L, "math");
  lua_getfield(L, -1, "randomseed");
  lua_pushinteger(L, seed);
  lua_pushinteger(L, 0);
  lua_call(L, 2, 0);
  return 0;
}

}  // namespace

const World& world_at(lua_State* L) {
  const World& world = check<World>(L, 1);
  if (comm().rank(world.group) < 0)
    fail(ORR_INVALID,
         "rank {} is no member of {}: only its members use its words (its rank is nil elsewhere)",
         world_info().rank, text_of(world));
  return world;
}

CollectiveCall call_at(lua_State* L, Collective kind) {
  CollectiveCall call;
  call.kind = kind;
  call.group = world_at(L).group;
  call.line = user_line(L);
  return call;
}

std::vector<Api> world_api() {
  const Arg self{"self", "World"}, x{"x", "any"}, options{"options", "options", "nil"};
  const Arg tag{"tag", "integer", "0", "tells messages between the same ranks apart"};
  std::vector<Api> rows = {
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
       "Seeds data order, math.random, and the random numbers of parameters, runs and functions "
       "made "
       "after it: the n-th of them draws alike whenever the seed is the same.",
       seed,
       {{"seed", "integer"}},
       {}},
      {"World",
       "group",
       "orrery.World",
       "These ranks as a world of their own, counted from 0 in their order; all ranks call it.",
       group,
       {self, {"ranks", "integers"}},
       {}},
      {"World",
       "send",
       "",
       "Sends to one rank, which receives.",
       send,
       {self, x, options},
       {{"to", "integer", nullptr, "rank that receives"}, tag}},
      {"World",
       "recv",
       "orrery.HostTensor",
       "Receives a tensor of the type of `x` from one rank.",
       recv,
       {self, x, options},
       {{"from", "integer", nullptr, "rank that sends"}, tag}},
      {"World", "barrier", "", "Waits until all ranks are here.", barrier, {self}, {}},
      {"World",
       "join",
       "integer",
       "For a rank without data: adds zeros to the others' allreduces until all have joined; the "
       "last to join.",
       join_in,
       {self},
       {}},
      {"World",
       "__tostring",
       "string",
       "Its ranks.",
       show,
       {{"a", "any"}, {"b", "any", "nil"}},
       {}},
  };
  for (const std::vector<Api>& more : {collective_api(), object_api()})
    rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

void define_world_class(lua_State* L) {
  define_class<World>(L, {"World"}, world_properties, {"rank", "size", "local_rank", "local_size"});
  define_class<Handle>(L, {"Handle"});
  lua_pop(L, 2);
}

}  // namespace orrery::lua
