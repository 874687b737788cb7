// SPDX-License-Identifier: Apache-2.0
//
// Calls by which a strategy in Lua adds and copies ops, and changes what ops read. Arithmetic of
// tensors adds ops as well.
#include <map>

#include "edit/edit_table.h"
#include "lower/abi_op.h"
#include "lua/strategy_draft.h"
#include "program/expr.h"

namespace orrery::lua {
namespace {

const std::map<std::string, int32_t> kPhases = {
    {"forward", ORR_PHASE_FORWARD}, {"backward", ORR_PHASE_BACKWARD}, {"update", ORR_PHASE_UPDATE}};
const std::map<std::string, int32_t> kUses = {{"all", ORR_USES_ALL},
                                              {"forward", 1 << ORR_PHASE_FORWARD},
                                              {"backward", 1 << ORR_PHASE_BACKWARD},
                                              {"update", 1 << ORR_PHASE_UPDATE},
                                              {"results", ORR_USES_RESULTS}};

void push_attribute(lua_State* L, const orr_attr& a) {
  switch (a.type) {
    case ORR_ATTR_INT: return lua_pushinteger(L, a.i);
    case ORR_ATTR_REAL: return lua_pushnumber(L, a.f);
    case ORR_ATTR_TEXT: return push_text(L, a.text);
    default: return push_shape(L, Dims(a.ints, a.ints + a.count));
  }
}

// Calls add(out, capacity, n) and returns the ids that it has written to `out`.
template <class Add>
std::vector<int32_t> made_by(lua_State* L, Add&& add) {
  std::vector<int32_t> out(64);
  int32_t n = 0;
  orrery::check(add(out.data(), static_cast<int32_t>(out.size()), &n));
  if (static_cast<size_t>(n) > out.size())
    fail(ORR_UNIMPLEMENTED, "an op of {} outputs: a draft adds ops of {} at most", n, out.size());
  out.resize(static_cast<size_t>(n));
  luaL_checkstack(L, n, "the outputs of an op");
  return out;
}

std::vector<int32_t> op(lua_State* L, Draft& d, Program&, const std::string& kind, Index inputs,
                        Index attributes) {
  const std::vector<int32_t> in = list_at(L, inputs, id_at);
  Attrs attrs;
  if (lua_istable(L, attributes))
    for (const std::string& name : sorted_keys(L, attributes))
      attrs.set(name, Table{L, attributes}.with(name, attr_at));
  std::vector<orr_attr> given;
  for (auto& [name, attr] : attrs) given.push_back(abi_attr(name, attr));
  const orr_op_desc desc = {sizeof desc,
                            static_cast<int32_t>(in.size()),
                            static_cast<int32_t>(given.size()),
                            kind.c_str(),
                            in.data(),
                            given.data(),
                            nullptr};
  return made_by(L, [&](int32_t* out, int32_t capacity, int32_t* n) {
    return d.edit->op(d.program, &desc, out, capacity, n);
  });
}

void beside(lua_State* L, Draft& d, Index value, const std::string& phase) {
  const int32_t id = lua_isnil(L, value) ? kNone : id_at(L, value);
  edit(d, &orr_edit::beside, id, find("phase", phase, kPhases));
  regions() = {d.program->program->site().region};
}

void before(lua_State* L, Draft& d, Index value) {
  edit(d, &orr_edit::before, lua_isnil(L, value) ? kNone : id_at(L, value));
}

Pushed copy(lua_State* L, Draft& d, Id value, const std::string& name, Index inputs) {
  const int32_t phase = find("phase", name, kPhases);
  const std::vector<int32_t> in = list_at(L, inputs, id_at);
  const std::vector<int32_t> made = made_by(L, [&](int32_t* out, int32_t capacity, int32_t* n) {
    return d.edit->copy(d.program, value, phase, in.data(), static_cast<int32_t>(in.size()), out,
                        capacity, n);
  });
  for (int32_t v : made) lua_pushinteger(L, v);
  return {static_cast<int>(made.size())};
}

void replace(Draft& d, Id value, Id by, const std::string& uses) {
  edit(d, &orr_edit::replace, value.number, by.number,
       static_cast<uint32_t>(find("use", uses, kUses)));
}

void retype(Draft& d, Id value, const Table& options) {
  const auto dtype = [&](const char* name) {
    return options.has(name) ? options.with(name, to_dtype) : 0;
  };
  edit(d, &orr_edit::retype, value.number, dtype("compute"), dtype("store"));
}

// Fills the table on top of the stack with a description of the op.
orr_status* describe_op(void* arg, const orr_op_desc* op) {
  auto* L = static_cast<lua_State*>(arg);
  set_field(L, "kind", op->kind);
  lua_newtable(L);
  for (int32_t i = 0; i < op->n_attrs; ++i) {
    push_attribute(L, op->attrs[i]);
    lua_setfield(L, -2, op->attrs[i].name);
  }
  lua_setfield(L, -2, "attributes");
  if (op->expr) set_field(L, "fn", scalar_fn(op->expr->instrs[op->expr->n_instrs - 1].fn).name);
  return nullptr;
}

Pushed maker(lua_State* L, Draft& d, Id value) {
  lua_newtable(L);
  edit(d, &orr_edit::maker, value.number, L, describe_op);
  return {1};
}

bool trains(Draft& d) { return d.edit->trains(d.program); }

}  // namespace

std::vector<Api> draft_program_api() {
  return {
      {"Draft:op(kind: string, inputs: list, attributes?: table) -> orrery.Tensor ...; Adds an op "
       "of a kind (docs/ops.md); all its outputs. Arithmetic of tensors adds ops as well. "
       "@param inputs; values "
       "@param attributes; integers, numbers, texts and lists of integers, by name",
       call<op>},
      {"Draft:beside(value: any, phase: string); Says where ops that are added from now on belong: "
       "to the module and stage of a value's op (nil: to none), and to a phase, forward, backward "
       "or update.",
       call<beside>},
      {"Draft:before(value?: any); Lets ops that are added from now on stand right before the op "
       "that makes a value, in their order; nil: right before what reads them, as at first.",
       call<before>},
      {"Draft:copy(value: value, phase: string, inputs: list) -> integer ...; Adds a copy of the "
       "op that makes a value, on other inputs of the same types; the numbers of all its outputs. "
       "@param inputs; values",
       call<copy>},
      {"Draft:replace(value: value, by: value, uses: string = 'all'); Lets what reads a value read "
       "`by`, of the same type: all uses, or those of ops of a phase, or results. What `by` is "
       "computed from stays. "
       "@param uses; all, forward, backward, update or results",
       call<replace>},
      {"Draft:reread(of: value, value: value, by: value); Lets the op that makes `of` alone read "
       "`by` in place of a value.",
       call<handed<&orr_edit::reread, Id, Id, Id>>},
      {"Draft:retype(value: value, options?); Types a value's op anew from what it reads now. "
       "@option compute?: dtype; what it computes in where it did so in the value's dtype "
       "@option store?: dtype; what a sum or a cast is stored in",
       call<retype>},
      {"Draft:maker(value: value) -> table; The op that makes a value: {kind =, attributes =, fn = "
       "of pointwise}.",
       call<maker>},
      {"Draft:trains() -> boolean; Whether the program is a training step's.", call<trains>},
      {"Draft:cotangent(value: value); In transform_forward: differentiates the loss times a "
       "number of f32, by which gradients are divided.",
       call<handed<&orr_edit::cotangent, Id>>},
      {"Draft:output(name: string, value: value); Makes a value a result of the step. One named "
       "skipped_steps counts the steps that have changed nothing.",
       call<handed<&orr_edit::output, std::string, Id>>},
  };
}

}  // namespace orrery::lua
