// SPDX-License-Identifier: Apache-2.0
//
// Ops of plugins as the Lua library calls them (scripts/orrery/op.lua).
#include "lower/plugin_ops.h"

#include "lua/api.h"
#include "lua/objects.h"

namespace orrery::lua {
namespace {

void push_option(lua_State* L, const Attr& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return lua_pushinteger(L, *whole);
  if (const auto* real = std::get_if<double>(&value)) return lua_pushnumber(L, *real);
  push_text(L, std::get<std::string>(value));
}

int list(lua_State* L) {
  lua_newtable(L);
  lua_Integer number = 0;
  for (const PluginOp& op : plugin_ops()) {
    lua_newtable(L);
    push_text(L, op.name);
    lua_setfield(L, -2, "name");
    push_text(L, op.plugin);
    lua_setfield(L, -2, "plugin");
    lua_pushinteger(L, op.n_in);
    lua_setfield(L, -2, "inputs");
    lua_newtable(L);
    for (const auto& [name, value] : op.options) {
      push_option(L, value);
      lua_setfield(L, -2, name.c_str());
    }
    lua_setfield(L, -2, "options");
    lua_rawseti(L, -2, ++number);
  }
  return 1;
}

const PluginOp& op_at(lua_State* L) {
  return plugin_ops().at(static_cast<size_t>(lua_tointeger(L, 1)) - 1);
}

// Of the default's type, as the library has checked.
Attr option_at(lua_State* L, const std::string& name, const Attr& fallback) {
  lua_getfield(L, 2, name.c_str());
  Attr value;
  if (std::holds_alternative<int64_t>(fallback))
    value = static_cast<int64_t>(lua_tointeger(L, -1));
  else if (std::holds_alternative<double>(fallback))
    value = static_cast<double>(lua_tonumber(L, -1));
  else
    value = to_text(L, -1, name.c_str());
  lua_pop(L, 1);
  return value;
}

int call(lua_State* L) {
  const PluginOp& op = op_at(L);
  std::vector<Attr> options;
  for (const auto& [name, fallback] : op.options) options.push_back(option_at(L, name, fallback));
  Program& program = program_here(L);
  std::vector<ValueId> in;
  for (lua_Integer i = 1; i <= op.n_in; ++i) {
    lua_rawgeti(L, 3, i);
    in.push_back(value_at(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  push_tensor(L, add_plugin_op(program, op, options, in));
  return 1;
}

int examples(lua_State* L) {
  const PluginOp& op = op_at(L);
  lua_newtable(L);
  for (int32_t number = 0; number < op.n_examples; ++number) {
    lua_newtable(L);
    lua_Integer at = 0;
    for (const Type& type : example_of(op, number)) {
      lua_newtable(L);
      push_shape(L, type.dims);
      lua_setfield(L, -2, "shape");
      push_text(L, dtype_name(type.dtype));
      lua_setfield(L, -2, "dtype");
      lua_rawseti(L, -2, ++at);
    }
    lua_rawseti(L, -2, number + 1);
  }
  return 1;
}

}  // namespace

std::vector<Api> plugin_op_api() {
  return {{"engine",
           "plugin_ops",
           "table[]",
           "The ops of all plugins: {name =, plugin =, inputs =, options = {name = default}}.",
           list,
           {},
           {}},
          {"engine",
           "plugin_op",
           "orrery.Tensor",
           "What op `number` of that list makes of the tensors `xs`, given all its options.",
           call,
           {{"number", "integer"}, {"given", "table"}, {"xs", "table"}},
           {}},
          {"engine",
           "plugin_op_examples",
           "table[]",
           "The inputs that op `number` is tried on: lists of {shape =, dtype =}.",
           examples,
           {{"number", "integer"}},
           {}}};
}

}  // namespace orrery::lua
