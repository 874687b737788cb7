// SPDX-License-Identifier: Apache-2.0
//
// The editing calls of strategy/1 for strategies that are written in Lua.
#include "lua/strategy_draft.h"

#include <map>

namespace orrery::lua {
namespace {

using Text = std::string;
using Names = std::map<std::string, int32_t>;

const Names kPieces = {
    {"state", ORR_SHARD_STATE}, {"gradient", ORR_SHARD_GRADIENT}, {"param", ORR_SHARD_PARAM}};
const Names kWaits = {{"host", ORR_LIFE_HOST}, {"disk", ORR_LIFE_DISK}};
const Names kTiers = {{"host", ORR_TIER_HOST}, {"disk", ORR_TIER_DISK}};

int64_t axis(Draft& d, const Text& name, Count size) {
  edit(d, &orr_edit::axis, name.c_str(), size.number);
  return d.edit->axis_size(d.program, name.c_str());
}

std::vector<int32_t> small_integers(lua_State* L, Index at, const char* what) {
  std::vector<int32_t> found;
  for (int64_t n : to_integers(L, at, what)) found.push_back(static_cast<int32_t>(n));
  return found;
}

void deal(lua_State* L, Draft& d, const Text& axis, Index given) {
  const std::vector<int32_t> shares = small_integers(L, given, "shares");
  edit(d, &orr_edit::deal, axis.c_str(), shares.data(), static_cast<int32_t>(shares.size()));
}

void stage(lua_State* L, Draft& d, const Text& axis, Index ranks, Index parts) {
  const std::vector<int32_t> where = small_integers(L, ranks, "where");
  std::vector<std::string> modules;
  for (lua_Integer i = 1; lua_istable(L, parts) && lua_rawgeti(L, parts, i) != LUA_TNIL; ++i) {
    modules.push_back(to_text(L, -1, fmt::format("modules[{}]", i)));
    lua_pop(L, 1);
  }
  if (!modules.empty() && modules.size() != where.size())
    fail(ORR_INVALID, "{} chunks have ranks and {} have modules", where.size(), modules.size());
  std::vector<const char*> texts;
  for (const std::string& m : modules) texts.push_back(m.c_str());
  edit(d, &orr_edit::stage, axis.c_str(), static_cast<int32_t>(where.size()), where.data(),
       texts.empty() ? nullptr : texts.data());
}

void wait_in(Draft& d, Id value, const Text& tier) {
  edit(d, &orr_edit::life, value.number, "", find("tier", tier, kWaits));
}

void shard(Draft& d, Id value, const Table& options) {
  const Text axis = options.text("axis");
  orr_shard how{};
  how.size = sizeof how, how.axis = axis.c_str();
  how.what = find("piece", options.text("what"), kPieces);
  how.unit = static_cast<int32_t>(options.integer("unit"));
  how.owner = static_cast<int32_t>(options.integer("owner"));
  how.each = options.flag("each"), how.rows = options.flag("rows");
  edit(d, &orr_edit::shard, value.number, &how);
}

void offload(Draft& d, Id value, const Text& tier, const Text& directory) {
  edit(d, &orr_edit::offload, value.number, find("tier", tier, kTiers), directory.c_str());
}

}  // namespace

std::vector<Api> draft_edit_api() {
  return {
      {"Draft:axis(name: string, size: integer = 0) -> integer; Makes a mesh axis over `size` "
       "ranks (0: all that are left); its size.",
       call<axis>},
      {"Draft:halve(axis: string, outer: string, inner: string, size: integer); Sees an axis as "
       "two: `size` neighbours form `inner`, equal places in them `outer`.",
       call<handed<&orr_edit::halve, Text, Text, Text, Count>>},
      {"Draft:place(value: value, axis: string, dim: integer); Cuts a value along a dim over the "
       "ranks of an axis: batch fields along dim 1 are dealt; any other cut, over one axis or "
       "several, lets the ranks share the work on every sample, and what reads the value follows.",
       call<handed<&orr_edit::place, Id, Text, FromOne>>},
      {"Draft:reduce(value: value, axis: string, bucket: integer = 26214400); Sums a gradient over "
       "an axis, in buckets of about `bucket` bytes.",
       call<handed<&orr_edit::reduce, Id, Text, int64_t>>},
      {"Draft:remark(text: string); A line for `orrery plan`.",
       call<handed<&orr_edit::diag, Text>>},
      {"Draft:loop(); Runs a rank's microbatches one after another.",
       call<handed<&orr_edit::loop>>},
      {"Draft:stage(axis: string, where: integers, modules?: any); Deals the model in chunks: "
       "`where` lists their ranks on the axis, `modules` what is in them.",
       call<stage>},
      {"Draft:wait_in(value: value, tier: string); Lets a forward activation wait for backward in "
       "the tier host or disk.",
       call<wait_in>},
      {"Draft:scatter(axis: string, dim: integer); Keeps sums over an axis in shares of a dim "
       "where ops can work on them.",
       call<handed<&orr_edit::scatter, Text, FromOne>>},
      {"Draft:chunk(axis: string, chunks: integer); Makes sums over dims cut over an axis trees of "
       "so many partial sums, on any number of ranks.",
       call<handed<&orr_edit::chunk, Text, Count>>},
      {"Draft:shard(value: value, options); Cuts the training of a parameter over the ranks that "
       "share the batch. "
       "@option what: string = 'state'; state, gradient or param: each includes the ones before "
       "@option axis: string = 'data'; the axis that deals the batch, or its inner half "
       "@option unit: integer = 0; parameters of equal number travel together "
       "@option owner: integer = -1; the coordinate that holds it whole; -1: cut evenly "
       "@option each: boolean = false; gathered, and gradients sent, for each microbatch "
       "@option rows: boolean = false; cut between rows of the first dim: a rank has whole rows",
       call<shard>},
      {"Draft:idle(axis: string, ranks: integer); Gives no microbatches to the first ranks of "
       "the axis that deals the batch.",
       call<handed<&orr_edit::idle, Text, Count>>},
      {"Draft:deal(axis: string, shares: integers); Deals microbatches to the ranks of the axis in "
       "proportion to their shares.",
       call<deal>},
      {"Draft:offload(value: value, tier: string, directory: string = ''); Keeps a parameter or "
       "state in the tier host or disk between its uses.",
       call<offload>},
  };
}

}  // namespace orrery::lua
