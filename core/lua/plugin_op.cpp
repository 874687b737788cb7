// SPDX-License-Identifier: Apache-2.0
//
// The calls by which the Lua library adds ops of plugins (scripts/orrery/op.lua).
#include "edit/op_on_parts.h"
#include "edit/plugin_ops.h"

#include "lua/call.h"
#include "plugin/registry.h"

namespace orrery::lua {
namespace {

void push_option(lua_State* L, const Attr& value) {
  if (const auto* whole = std::get_if<int64_t>(&value)) return lua_pushinteger(L, *whole);
  if (const auto* real = std::get_if<double>(&value)) return lua_pushnumber(L, *real);
  push_text(L, std::get<std::string>(value));
}

void push_op(lua_State* L, const PluginOp& op) {
  lua_newtable(L);
  set_field(L, "name", op.name);
  set_field(L, "plugin", op.plugin);
  set_field(L, "inputs", static_cast<int64_t>(op.n_in));
  set_field(L, "results", static_cast<int64_t>(op.n_out));
  set_field(L, "both", op.kernel && op.known);
  lua_newtable(L);
  for (const auto& [name, value] : op.options) {
    push_option(L, value);
    lua_setfield(L, -2, name.c_str());
  }
  lua_setfield(L, -2, "options");
}

Pushed list(lua_State* L) {
  push_list(L, plugin_ops(), push_op);
  return {1};
}

std::string not_loaded() { return Registry::get().not_loaded(ORR_KIND_OP); }

const PluginOp& op_of(int64_t number) { return plugin_ops().at(static_cast<size_t>(number) - 1); }

// The value of an option. It has the type of the default, which the library has checked.
Attr option_at(const Table& given, const std::string& name, const Attr& fallback) {
  if (std::holds_alternative<int64_t>(fallback)) return given.integer(name);
  if (std::holds_alternative<double>(fallback)) return given.number(name);
  return given.text(name);
}

std::vector<Attr> options_at(const Table& given, const PluginOp& op) {
  std::vector<Attr> options;
  for (const auto& [name, fallback] : op.options)
    options.push_back(option_at(given, name, fallback));
  return options;
}

std::vector<ValueId> call_op(Program& p, int64_t number, const Table& given,
                             const std::vector<ValueId>& xs, bool known) {
  const PluginOp& op = op_of(number);
  return add_plugin_op(p, op, options_at(given, op), xs, known);
}

std::vector<ValueId> call_on_parts(Program& p, int64_t number, const Table& given,
                                   const std::vector<ValueId>& xs, int64_t factor, int64_t ranks) {
  const PluginOp& op = op_of(number);
  return add_on_parts(p, op, options_at(given, op), xs, static_cast<int>(factor),
                      static_cast<int>(ranks));
}

void push_type(lua_State* L, const Type& type) {
  lua_newtable(L);
  push_shape(L, type.dims);
  lua_setfield(L, -2, "shape");
  set_field(L, "dtype", dtype_name(type.dtype));
}

Pushed examples(lua_State* L, int64_t number) {
  const PluginOp& op = op_of(number);
  std::vector<std::vector<Type>> all;
  for (int32_t i = 0; i < op.n_examples; ++i) all.push_back(example_of(op, i));
  push_list(L, all, [](lua_State* state, const std::vector<Type>& types) {
    push_list(state, types, push_type);
  });
  return {1};
}

Type type_at(lua_State* L, int index) {
  const Table given{L, index};
  return {given.with("dtype", [](lua_State* state, int at) { return to_dtype(state, at); }),
          given.integers("shape")};
}

void push_factors(lua_State* L, const std::vector<int>& factors) {
  push_list(L, std::vector<int64_t>(factors.begin(), factors.end()));
}

template <Sharding (*of)(const PluginOp&, const std::vector<Type>&)>
Pushed factors(lua_State* L, int64_t number, Index types) {
  const Sharding found = of(op_of(number), list_at(L, types, type_at));
  if (found.out.empty()) return {0};
  push_list(L, found.in, push_factors);
  push_list(L, found.out, push_factors);
  return {2};
}

}  // namespace

std::vector<Api> plugin_op_api() {
  return {
      {"engine.plugin_ops() -> table[]; The ops of all plugins: {name =, plugin =, inputs =, "
       "results =, both = whether kernels compute it and known ops can, options = {name = "
       "default}}.",
       call<list>},
      {"engine.op_plugins_not_loaded() -> string; For errors: '; op ... could not be loaded: why', "
       "or ''.",
       call<not_loaded>},
      {"engine.plugin_op(number: integer, given: table, xs: table, known: boolean) -> Tensor...; "
       "What op `number` of that list makes of the tensors `xs`, given all its options; `known`: "
       "in known ops, if it can be.",
       call<call_op>},
      {"engine.plugin_op_examples(number: integer) -> table[]; The inputs that op `number` is "
       "tried on: lists of {shape =, dtype =}.",
       call<examples>},
      {"engine.plugin_op_factors(number: integer, types: table) -> table?, table?; For each input "
       "of op `number`, of types {shape =, dtype =}, the factor of each dim, and the same for each "
       "result; -1: a dim that is not cut. Nothing, if no kernel computes the op.",
       call<factors<factors_of>>},
      {"engine.plugin_op_part_factors(number: integer, types: table) -> table?, table?; The same "
       "for "
       "dims along which the plugin writes the op on parts.",
       call<factors<part_factors_of>>},
      {"engine.plugin_op_on_parts(number: integer, given: table, xs: table, factor: integer, "
       "ranks: "
       "integer) -> Tensor...; What `ranks` ranks make together of parts of `xs` along a dim of "
       "that factor: each result, or, where it has no such dim, those of all ranks in a dim in "
       "front.",
       call<call_on_parts>},
  };
}

}  // namespace orrery::lua
