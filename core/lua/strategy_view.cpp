// SPDX-License-Identifier: Apache-2.0
//
// What strategies written in Lua can ask of the program that they edit.
#include <map>

#include "lua/api.h"
#include "lua/strategy_draft.h"
#include "plugin/host.h"

namespace orrery::lua {

const Draft& open_draft(lua_State* L) {
  const Draft& draft = check<Draft>(L, 1);
  if (!draft.program)
    fail(ORR_INVALID, "this program is closed: a strategy edits it inside its transform only");
  return draft;
}

int32_t id_at(lua_State* L, int index) {
  if (is_tensor(L, index)) return value_at(L, index);
  if (!lua_istable(L, index)) return static_cast<int32_t>(lua_tointeger(L, index));
  lua_getfield(L, index, "id");
  const int32_t id = static_cast<int32_t>(to_integer(L, -1, "the id of a value"));
  lua_pop(L, 1);
  return id;
}

namespace {

const std::map<std::string, int32_t> kRoles = {
    {"activation", ORR_ROLE_ACTIVATION}, {"param", ORR_ROLE_PARAM}, {"grad", ORR_ROLE_GRAD},
    {"state", ORR_ROLE_STATE},           {"input", ORR_ROLE_INPUT}, {"loss", ORR_ROLE_LOSS},
    {"scalar", ORR_ROLE_SCALAR},         {"batch", ORR_ROLE_BATCH}};
constexpr const char* kPhases[] = {"forward", "backward", "update"};
constexpr const char* kBatch[] = {"none", "samples", "sum", "mean"};

void push_value(lua_State* L, int32_t id, const orr_value_info& info) {
  lua_newtable(L);
  const auto text = [&](const char* name, const std::string& value) {
    push_text(L, value);
    lua_setfield(L, -2, name);
  };
  int64_t elements = 1;
  lua_createtable(L, info.type.rank, 0);
  for (int32_t d = 0; d < info.type.rank; ++d) {
    elements *= info.type.dims[d];
    lua_pushinteger(L, info.type.dims[d]);
    lua_rawseti(L, -2, d + 1);
  }
  lua_setfield(L, -2, "dims");
  lua_pushinteger(L, id);
  lua_setfield(L, -2, "id");
  lua_pushinteger(L, elements * orr_dtype_bytes(info.type.dtype));
  lua_setfield(L, -2, "bytes");
  text("dtype", dtype_name(info.type.dtype));
  text("name", info.name), text("region", info.region), text("line", info.where);
  text("op", info.kind), text("phase", kPhases[info.phase]);
  text("runs", kPhases[info.runs]), text("batch", kBatch[info.batch]);
  lua_pushinteger(L, info.op);
  lua_setfield(L, -2, "maker");
  lua_pushinteger(L, info.output + 1);
  lua_setfield(L, -2, "output");
}

// Appends each to the list on top of the stack.
orr_status* append(void* arg, int32_t value, const orr_value_info* info) {
  auto* L = static_cast<lua_State*>(arg);
  push_value(L, value, *info);
  lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
  return nullptr;
}

int values(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t role = find("role", to_text(L, 2, "role"), kRoles);
  lua_newtable(L);
  orrery::check(d.edit->each(d.program, 1u << role, L, append));
  return 1;
}

int ranks_left(lua_State* L) {
  const Draft& d = open_draft(L);
  lua_pushinteger(L, d.edit->ranks_left(d.program));
  return 1;
}

int axis_size(lua_State* L) {
  const Draft& d = open_draft(L);
  lua_pushinteger(L, d.edit->axis_size(d.program, to_text(L, 2, "name").c_str()));
  return 1;
}

// Pushes what `list(out, capacity)` writes, each moved by `base`.
template <class List>
int push_list(lua_State* L, List&& list, int32_t base) {
  std::vector<int32_t> all(static_cast<size_t>(list(nullptr, 0)));
  list(all.data(), static_cast<int32_t>(all.size()));
  lua_createtable(L, static_cast<int>(all.size()), 0);
  for (size_t i = 0; i < all.size(); ++i) {
    lua_pushinteger(L, all[i] < 0 ? all[i] : all[i] + base);
    lua_rawseti(L, -2, static_cast<lua_Integer>(i) + 1);
  }
  return 1;
}

int inputs(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t value = id_at(L, 2);
  return push_list(
      L, [&](int32_t* out, int32_t n) { return d.edit->inputs(d.program, value, out, n); }, 0);
}

int rule(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t value = id_at(L, 2), input = static_cast<int32_t>(lua_tointeger(L, 3)) - 1;
  return push_list(
      L, [&](int32_t* out, int32_t n) { return d.edit->rule(d.program, value, input, out, n); }, 1);
}

}  // namespace

std::vector<Api> draft_view_api() {
  const Arg self = {"self", "Draft"}, v = {"value", "value"};
  return {
      {"Draft",
       "values",
       "orrery.Value[]",
       "All values of a role (param, grad, batch, activation, ...): id, name, dims, dtype, bytes, "
       "region, line, op, phase, runs (the phase that the op runs in: forward also for derivatives "
       "that a loss is made of), batch (none, samples, sum or mean), and the number of the op "
       "(maker), whose output it is (output).",
       values,
       {self, {"role", "string"}},
       {}},
      {"Draft",
       "ranks_left",
       "integer",
       "Ranks that no earlier strategy of the stack has taken.",
       ranks_left,
       {self},
       {}},
      {"Draft",
       "axis_size",
       "integer",
       "Ranks on an axis, 0 if there is none; \"batch\": on all that gradients are summed over.",
       axis_size,
       {self, {"name", "string"}},
       {}},
      {"Draft",
       "inputs",
       "integer[]",
       "Numbers of the values that the op of a value reads.",
       inputs,
       {self, v},
       {}},
      {"Draft",
       "rule",
       "integer[]",
       "The factor of each dim of an op's input (0: of its output); -1: cannot be cut.",
       rule,
       {self, v, {"input", "integer", "0"}},
       {}},
  };
}

void define_draft_class(lua_State* L) {
  define_class<Draft>(L, {"Draft"});
  lua_pop(L, 1);
}

}  // namespace orrery::lua
