// SPDX-License-Identifier: Apache-2.0
//
// What a function of tensors is traced into, as Lua tables, for scripts that write it down in
// another form (scripts/orrery/onnx.lua).
#include "lua/traced_ops.h"

#include "run/variant.h"

namespace orrery::lua {
namespace {

void push_ids(lua_State* L, const std::vector<ValueId>& ids) {
  push_list(L, ids, [](lua_State* state, ValueId id) { push_value(state, id + 1); });
}

struct PushAttr {
  lua_State* L;
  void operator()(int64_t number) const { push_value(L, number); }
  void operator()(double number) const { push_value(L, number); }
  void operator()(const std::string& text) const { push_value(L, text); }
  void operator()(const Dims& list) const { push_list(L, list); }
};

// Of one instruction; registers count from 1, and so do inputs of the op.
void push_instruction(lua_State* L, const orr_instr& in) {
  lua_newtable(L);
  set_field(L, "fn", scalar_fn(in.fn).name), set_field(L, "dtype", dtype_name(in.dtype));
  set_field(L, "a", in.a + 1), set_field(L, "b", in.b + 1), set_field(L, "c", in.c + 1);
  set_field(L, "number", in.imm);
}

void push_op(lua_State* L, const Op& op) {
  lua_newtable(L);
  set_field(L, "kind", op.kind);
  set_field(L, "line", op.site.line.str()), set_field(L, "region", op.site.region.str());
  push_ids(L, op.in), lua_setfield(L, -2, "inputs");
  push_ids(L, op.out), lua_setfield(L, -2, "outputs");
  lua_newtable(L);
  for (const auto& [name, value] : op.attrs) {
    std::visit(PushAttr{L}, value);
    lua_setfield(L, -2, name.str().c_str());
  }
  lua_setfield(L, -2, "attributes");
  push_list(L, op.expr.instrs, push_instruction), lua_setfield(L, -2, "instructions");
  push_list(L, op.expr.outputs, [](lua_State* state, int32_t r) { push_value(state, r + 1); });
  lua_setfield(L, -2, "registers");
}

void push_one(lua_State* L, const Value& value) {
  lua_newtable(L);
  push_list(L, value.type.dims), lua_setfield(L, -2, "dims");
  set_field(L, "dtype", dtype_name(value.type.dtype)), set_field(L, "name", value.name);
  if (!value.state) return;
  give(L, StateRef{value.state});
  lua_setfield(L, -2, "state");
}

}  // namespace

Pushed traced(lua_State* L, Index body, Index inputs) {
  Program p;
  p.set_site({"", user_line(L)});
  std::vector<ValueId> given;
  for (const HostTensor& tensor : list_at(L, inputs, host_at))
    given.push_back(p.input(std::to_string(given.size() + 1), tensor.type));
  const TraceScope scope(false);
  const std::vector<ValueId> results = call_traced(
      Function(L, body), p, LUA_MULTRET,
      [&](lua_State* state) {
        for (ValueId id : given) give(state, id);
      },
      [](lua_State* state, int first) {
        std::vector<ValueId> all;
        for (int i = first; i <= lua_gettop(state); ++i) all.push_back(value_at(state, i));
        return all;
      });
  lua_newtable(L);
  push_ids(L, given), lua_setfield(L, -2, "inputs");
  push_ids(L, results), lua_setfield(L, -2, "results");
  push_list(L, p.values(), push_one), lua_setfield(L, -2, "values");
  push_list(L, p.ops(), push_op), lua_setfield(L, -2, "ops");
  set_field(L, "updates", static_cast<int64_t>(p.updates().size()));
  return {1};
}

}  // namespace orrery::lua
