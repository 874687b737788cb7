// SPDX-License-Identifier: Apache-2.0
//
// Calls by which a strategy in Lua reads the program that it edits.
#include <map>

#include "lua/strategy_draft.h"

namespace orrery::lua {

Draft& open_draft(lua_State* L, int index) {
  Draft& draft = check<Draft>(L, index);
  if (!draft.program)
    fail(ORR_INVALID, "this program is closed: a strategy edits it inside its transform only");
  return draft;
}

int32_t id_at(lua_State* L, int index) {
  if (is_tensor(L, index)) return value_at(L, index);
  if (!lua_istable(L, index)) return static_cast<int32_t>(lua_tointeger(L, index));
  return Table{L, index}.with("id", [](lua_State* state, int at) {
    return static_cast<int32_t>(to_integer(state, at, "the id of a value"));
  });
}

namespace {

const std::map<std::string, int32_t> kRoles = {{"activation", ORR_ROLE_ACTIVATION},
                                               {"param", ORR_ROLE_PARAM},
                                               {"grad", ORR_ROLE_GRAD},
                                               {"state", ORR_ROLE_STATE},
                                               {"input", ORR_ROLE_INPUT},
                                               {"loss", ORR_ROLE_LOSS},
                                               {"scalar", ORR_ROLE_SCALAR},
                                               {"batch", ORR_ROLE_BATCH},
                                               {"whole_batch", ORR_ROLE_WHOLE_BATCH}};
constexpr const char* kPhases[] = {"forward", "backward", "update"};
constexpr const char* kBatch[] = {"none", "samples", "sum", "mean"};

void push_info(lua_State* L, int32_t id, const orr_value_info& info) {
  const Dims dims(info.type.dims, info.type.dims + info.type.rank);
  lua_newtable(L);
  push_list(L, dims);
  lua_setfield(L, -2, "dims");
  set_field(L, "id", id);
  set_field(L, "bytes", Type{info.type.dtype, dims}.bytes());
  set_field(L, "dtype", dtype_name(info.type.dtype));
  set_field(L, "name", info.name), set_field(L, "region", info.region);
  set_field(L, "line", info.where), set_field(L, "op", info.kind);
  set_field(L, "phase", kPhases[info.phase]), set_field(L, "runs", kPhases[info.runs]);
  set_field(L, "batch", kBatch[info.batch]);
  set_field(L, "maker", info.op), set_field(L, "output", info.output + 1);
  if (info.chunk >= 0) set_field(L, "chunk", info.chunk + 1);
}

// Appends a value to the list on top of the stack.
orr_status* append(void* arg, int32_t value, const orr_value_info* info) {
  auto* L = static_cast<lua_State*>(arg);
  push_info(L, value, *info);
  lua_rawseti(L, -2, static_cast<lua_Integer>(lua_rawlen(L, -2)) + 1);
  return nullptr;
}

Pushed values(lua_State* L, Draft& d, const std::string& role) {
  const uint32_t roles = 1u << find("role", role, kRoles);
  lua_newtable(L);
  edit(d, &orr_edit::each, roles, L, append);
  return {1};
}

int64_t ranks_left(Draft& d) { return d.edit->ranks_left(d.program); }

int64_t axis_size(Draft& d, const std::string& name) {
  return d.edit->axis_size(d.program, name.c_str());
}

// The numbers that list(out, capacity) writes.
template <class List>
std::vector<int32_t> listed(List&& list) {
  std::vector<int32_t> all(static_cast<size_t>(list(nullptr, 0)));
  list(all.data(), static_cast<int32_t>(all.size()));
  return all;
}

Pushed inputs(lua_State* L, Draft& d, Id value) {
  push_list(
      L, listed([&](int32_t* out, int32_t n) { return d.edit->inputs(d.program, value, out, n); }));
  return {1};
}

Pushed rule(lua_State* L, Draft& d, Id value, FromOne input) {
  std::vector<int32_t> factors = listed(
      [&](int32_t* out, int32_t n) { return d.edit->rule(d.program, value, input, out, n); });
  for (int32_t& factor : factors) factor += factor >= 0;
  push_list(L, factors);
  return {1};
}

}  // namespace

std::vector<Api> draft_view_api() {
  return {
      {"Draft:values(role: string) -> orrery.Value[]; All values of a role (param, grad, batch, "
       "activation, ...): id, name, dims, dtype, bytes, region, line, op, phase, runs (the phase "
       "that the op runs in: forward also for derivatives that a loss is made of), batch (none, "
       "samples, sum or mean), the number of the op (maker), whose output it is (output), and the "
       "chunk of the model that it belongs to (chunk).",
       call<values>},
      {"Draft:ranks_left() -> integer; Ranks that no earlier strategy of the stack has taken.",
       call<ranks_left>},
      {"Draft:axis_size(name: string) -> integer; Ranks on an axis, 0 if there is none; \"batch\": "
       "on all that gradients are summed over.",
       call<axis_size>},
      {"Draft:inputs(value: value) -> integer[]; Numbers of the values that the op of a value "
       "reads.",
       call<inputs>},
      {"Draft:rule(value: value, input: integer = 0) -> integer[]; The factor of each dim of an "
       "op's input (0: of its output); -1: cannot be cut.",
       call<rule>},
  };
}

}  // namespace orrery::lua
