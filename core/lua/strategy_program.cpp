// SPDX-License-Identifier: Apache-2.0
//
// Programs as strategies written in Lua change them: ops that are added, copied, and read
// otherwise. Arithmetic of tensors adds ops as well.
#include <map>

#include "base/error.h"
#include "lower/abi_op.h"
#include "lower/edit_table.h"
#include "lua/api.h"
#include "lua/strategy_draft.h"
#include "plugin/host.h"
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

// The values in the list at `index`.
std::vector<int32_t> ids_at(lua_State* L, int index) {
  std::vector<int32_t> ids;
  for (lua_Integer i = 1; lua_rawgeti(L, index, i) != LUA_TNIL; ++i) {
    ids.push_back(id_at(L, lua_gettop(L)));
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return ids;
}

Attr attribute_at(lua_State* L, int index, const std::string& name) {
  if (lua_isinteger(L, index)) return static_cast<int64_t>(lua_tointeger(L, index));
  if (lua_isboolean(L, index)) return static_cast<int64_t>(lua_toboolean(L, index));
  if (lua_type(L, index) == LUA_TNUMBER) return static_cast<double>(lua_tonumber(L, index));
  if (lua_type(L, index) == LUA_TSTRING) return to_text(L, index, name);
  return to_integers(L, index, name);
}

Attrs attributes_at(lua_State* L, int index) {
  Attrs attrs;
  if (!lua_istable(L, index)) return attrs;
  for (const std::string& name : sorted_keys(L, index)) {
    lua_getfield(L, index, name.c_str());
    attrs[name] = attribute_at(L, lua_gettop(L), name);
    lua_pop(L, 1);
  }
  return attrs;
}

void push_attribute(lua_State* L, const orr_attr& a) {
  switch (a.type) {
    case ORR_ATTR_INT: return lua_pushinteger(L, a.i);
    case ORR_ATTR_REAL: return lua_pushnumber(L, a.f);
    case ORR_ATTR_TEXT: return push_text(L, a.text);
    default: return push_shape(L, Dims(a.ints, a.ints + a.count));
  }
}

// The outputs that `add(out, capacity, n)` makes.
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

int op(lua_State* L) {
  const Draft& d = open_draft(L);
  program_here(L);
  const std::string kind = to_text(L, 2, "kind");
  const std::vector<int32_t> in = ids_at(L, 3);
  const Attrs attrs = attributes_at(L, 4);
  std::vector<orr_attr> given;
  for (auto& [name, attr] : attrs) given.push_back(abi_attr(name, attr));
  const orr_op_desc desc = {sizeof desc,
                            static_cast<int32_t>(in.size()),
                            static_cast<int32_t>(given.size()),
                            kind.c_str(),
                            in.data(),
                            given.data(),
                            nullptr};
  const std::vector<int32_t> made = made_by(L, [&](int32_t* out, int32_t capacity, int32_t* n) {
    return d.edit->op(d.program, &desc, out, capacity, n);
  });
  for (int32_t v : made) push_tensor(L, v);
  return static_cast<int>(made.size());
}

int beside(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t value = lua_isnil(L, 2) ? kNone : id_at(L, 2);
  orrery::check(d.edit->beside(d.program, value, find("phase", to_text(L, 3, "phase"), kPhases)));
  regions() = {d.program->program->site().region};
  return 0;
}

int copy(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t value = id_at(L, 2), phase = find("phase", to_text(L, 3, "phase"), kPhases);
  const std::vector<int32_t> in = ids_at(L, 4);
  const std::vector<int32_t> made = made_by(L, [&](int32_t* out, int32_t capacity, int32_t* n) {
    return d.edit->copy(d.program, value, phase, in.data(), static_cast<int32_t>(in.size()), out,
                        capacity, n);
  });
  for (int32_t v : made) lua_pushinteger(L, v);
  return static_cast<int>(made.size());
}

int replace(lua_State* L) {
  const Draft& d = open_draft(L);
  const auto uses = static_cast<uint32_t>(find("use", to_text(L, 4, "uses"), kUses));
  orrery::check(d.edit->replace(d.program, id_at(L, 2), id_at(L, 3), uses));
  return 0;
}

int reread(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->reread(d.program, id_at(L, 2), id_at(L, 3), id_at(L, 4)));
  return 0;
}

int retype(lua_State* L) {
  const Draft& d = open_draft(L);
  const auto dtype = [&](const char* name) {
    lua_getfield(L, 3, name);
    const int32_t found = lua_isnil(L, -1) ? 0 : to_dtype(L, lua_gettop(L));
    lua_pop(L, 1);
    return found;
  };
  orrery::check(d.edit->retype(d.program, id_at(L, 2), dtype("compute"), dtype("store")));
  return 0;
}

// Fills the table on top of the stack.
orr_status* describe_op(void* arg, const orr_op_desc* op) {
  auto* L = static_cast<lua_State*>(arg);
  push_text(L, op->kind);
  lua_setfield(L, -2, "kind");
  lua_newtable(L);
  for (int32_t i = 0; i < op->n_attrs; ++i) {
    push_attribute(L, op->attrs[i]);
    lua_setfield(L, -2, op->attrs[i].name);
  }
  lua_setfield(L, -2, "attributes");
  if (!op->expr) return nullptr;
  push_text(L, scalar_fn(op->expr->instrs[op->expr->n_instrs - 1].fn).name);
  lua_setfield(L, -2, "fn");
  return nullptr;
}

int maker(lua_State* L) {
  const Draft& d = open_draft(L);
  const int32_t value = id_at(L, 2);
  lua_newtable(L);
  orrery::check(d.edit->maker(d.program, value, L, describe_op));
  return 1;
}

int trains(lua_State* L) {
  const Draft& d = open_draft(L);
  lua_pushboolean(L, d.edit->trains(d.program));
  return 1;
}

int cotangent(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->cotangent(d.program, id_at(L, 2)));
  return 0;
}

int output(lua_State* L) {
  const Draft& d = open_draft(L);
  orrery::check(d.edit->output(d.program, to_text(L, 2, "name").c_str(), id_at(L, 3)));
  return 0;
}

}  // namespace

std::vector<Api> draft_program_api() {
  const Arg self = {"self", "Draft"}, v = {"value", "value"}, phase = {"phase", "string"};
  return {
      {"Draft",
       "op",
       "orrery.Tensor ...",
       "Adds an op of a kind (docs/ops.md); all its outputs. Arithmetic of tensors adds ops as "
       "well.",
       op,
       {self,
        {"kind", "string"},
        {"inputs", "table", nullptr, "values"},
        {"attributes", "table", "nil", "integers, numbers, texts and lists of integers, by name"}},
       {}},
      {"Draft",
       "beside",
       "",
       "Says where ops that are added from now on belong: to the module and stage of a value's op "
       "(nil: to none), and to a phase, forward, backward or update.",
       beside,
       {self, {"value", "any"}, phase},
       {}},
      {"Draft",
       "copy",
       "integer ...",
       "Adds a copy of the op that makes a value, on other inputs of the same types; the numbers "
       "of "
       "all its outputs.",
       copy,
       {self, v, phase, {"inputs", "table", nullptr, "values"}},
       {}},
      {"Draft",
       "replace",
       "",
       "Lets what reads a value read `by`, of the same type: all uses, or those of ops of a phase, "
       "or results. What `by` is computed from stays.",
       replace,
       {self,
        v,
        {"by", "value"},
        {"uses", "string", "'all'", "all, forward, backward, update or results"}},
       {}},
      {"Draft",
       "reread",
       "",
       "Lets the op that makes `of` alone read `by` in place of a value.",
       reread,
       {self, {"of", "value"}, v, {"by", "value"}},
       {}},
      {"Draft",
       "retype",
       "",
       "Types a value's op anew from what it reads now.",
       retype,
       {self, v, {"options", "options", "nil"}},
       {{"compute", "dtype", "nil", "what it computes in where it did so in the value's dtype"},
        {"store", "dtype", "nil", "what a sum or a cast is stored in"}}},
      {"Draft",
       "maker",
       "table",
       "The op that makes a value: {kind =, attributes =, fn = of pointwise}.",
       maker,
       {self, v},
       {}},
      {"Draft",
       "trains",
       "boolean",
       "Whether the program is a training step's.",
       trains,
       {self},
       {}},
      {"Draft",
       "cotangent",
       "",
       "In transform_forward: differentiates the loss times a number of f32, by which gradients "
       "are divided.",
       cotangent,
       {self, {"value", "value"}},
       {}},
      {"Draft",
       "output",
       "",
       "Makes a value a result of the step. One named skipped_steps counts the steps that have "
       "changed nothing.",
       output,
       {self, {"name", "string"}, {"value", "value"}},
       {}},
  };
}

}  // namespace orrery::lua
