// SPDX-License-Identifier: Apache-2.0
//
// orrery.world: the ranks of the job, groups of them, and operations other than collectives on
// tensors.
#include "lua/world.h"

#include <algorithm>

#include "base/text.h"
#include "lua/call.h"
#include "lua/environment.h"
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

// Makes a group. All ranks make it together; if they name different members, all get an error.
World group(lua_State* L, World& self, Index ranks) {
  if (!self.ranks.empty())
    fail(ORR_INVALID, "{}:group: groups are made of the world, not of groups", text_of(self));
  World made{0, members_at(L, ranks)};
  CollectiveCall call = call_of(L, self, Collective::barrier);
  call.name = text_of(made);
  post(comm(), std::move(call)).wait();
  const bool member = std::count(made.ranks.begin(), made.ranks.end(), world_info().rank) > 0;
  made.group = comm().split(member ? 0 : -1, world_info().rank);
  return made;
}

void barrier(lua_State* L, World& self) {
  post(comm(), call_of(L, self, Collective::barrier)).wait();
}

int64_t join_in(lua_State* L, World& self) {
  return post(comm(), call_of(L, self, Collective::join)).wait().last;
}

Route route_of(lua_State* L, const World& self, const Table& options, const char* peer) {
  return {static_cast<int>(options.integer(peer)), static_cast<int>(options.integer("tag")),
          group_of(self), user_line(L)};
}

// A value that a rank can read by itself, such as that of a parameter.
HostTensor own_value(lua_State* L, int index) {
  const auto* ref = test<StateRef>(L, index);
  if (!ref) return host_at(L, index);
  materialize({ref->state});
  if (!ref->state->parts.empty())
    fail(
        ORR_INVALID,
        "send: '{}' is held in parts by the ranks, which only all of them can read together: write "
        "local w = p:read() on all ranks, and send w",
        ref->state->name);
  return read_state(*ref->state);
}

void send(lua_State* L, World& self, Index x, const Table& options) {
  const Route to = route_of(L, self, options, "to");
  if (!runtime_options().plan_only) send_tensor(comm(), own_value(L, x), to);
}

HostTensor recv(lua_State* L, World& self, Index x, const Table& options) {
  const Route from = route_of(L, self, options, "from");
  const auto* ref = test<StateRef>(L, x);
  const HostTensor like = ref ? HostTensor::make(ref->state->type) : host_at(L, x);
  return runtime_options().plan_only ? like : recv_tensor(comm(), like.type, from);
}

std::string show(World& self) {
  return fmt::format("World {} of {} ranks", text_of(self), size_of(self));
}

// This rank's number in the world or group; nil if it is not in the group.
Pushed rank(lua_State* L, World& self) {
  const int rank = self.ranks.empty() ? world_info().rank : comm().rank(self.group);
  rank < 0 ? lua_pushnil(L) : lua_pushinteger(L, rank);
  return {1};
}

int64_t size(World& self) { return size_of(self); }
int64_t local_rank(World&) { return world_info().local_rank; }
int64_t local_size(World&) { return world_info().local_size; }

World world() { return {}; }

World init(const Table& options) {
  const std::string comm = options.text("comm");
  if (!comm.empty()) {
    Registry::get().comm(comm);  // throws if there is no plugin of this name
    runtime_options().comm = comm;
  }
  return {};
}

void seed(lua_State* L, int64_t seed) {
  runtime_options().seed = static_cast<uint64_t>(seed);
  ordinals().begin_anew();
  seed_random(L);
}

}  // namespace

int group_of(const World& world) {
  if (comm().rank(world.group) < 0)
    fail(ORR_INVALID,
         "rank {} is no member of {}: only its members call its functions (its rank is nil "
         "elsewhere)",
         world_info().rank, text_of(world));
  return world.group;
}

CollectiveCall call_of(lua_State* L, const World& world, Collective kind) {
  CollectiveCall call;
  call.kind = kind;
  call.group = group_of(world);
  call.line = user_line(L);
  return call;
}

std::vector<Api> world_api() {
  return {
      {"engine.world() -> World; The ranks of this job.", call<world>},
      {"orrery.init(options?) -> World; Chooses the comm backend; returns the world. "
       "@option comm: string = ''; name of a comm plugin",
       call<init>},
      {"orrery.seed(seed: integer); Seeds data order, math.random, and the random numbers of "
       "parameters, runs and functions made after it: the n-th of them draws alike whenever the "
       "seed is the same.",
       call<seed>},
      {"World.rank: integer", call<rank>},
      {"World.size: integer", call<size>},
      {"World.local_rank: integer", call<local_rank>},
      {"World.local_size: integer", call<local_size>},
      {"World:group(ranks: integers) -> World; These ranks as a world of their own, counted from 0 "
       "in their order; all ranks call it.",
       call<group>},
      {"World:send(x: any, options?); Sends to one rank, which receives. "
       "@option to: integer; rank that receives "
       "@option tag: integer = 0; tells messages between the same ranks apart",
       call<send>},
      {"World:recv(x: any, options?) -> HostTensor; Receives a tensor of the type of `x` from one "
       "rank. "
       "@option from: integer; rank that sends "
       "@option tag: integer = 0; tells messages between the same ranks apart",
       call<recv>},
      {"World:barrier(); Waits until all ranks are here.", call<barrier>},
      {"World:join() -> integer; For a rank without data: adds zeros to the others' allreduces "
       "until all have joined; the last to join.",
       call<join_in>},
      {"World.__tostring(a: any, b?: any) -> string; Its ranks.", call<show>},
  };
}

}  // namespace orrery::lua
