// SPDX-License-Identifier: Apache-2.0
#include "lua/api_types.h"

#include "lua/objects.h"
#include "lua/world.h"

namespace orrery::lua {
namespace {

bool any(lua_State* L, int i) { return !lua_isnone(L, i); }
bool boolean(lua_State* L, int i) { return lua_isboolean(L, i); }
bool number(lua_State* L, int i) { return lua_type(L, i) == LUA_TNUMBER; }
bool integer(lua_State* L, int i) {
  int exact = 0;
  if (number(L, i)) lua_tointegerx(L, i, &exact);
  return exact != 0;
}
bool text(lua_State* L, int i) { return lua_type(L, i) == LUA_TSTRING; }
bool table(lua_State* L, int i) { return lua_istable(L, i); }
bool function(lua_State* L, int i) { return lua_isfunction(L, i); }
bool integers(lua_State* L, int i) { return table(L, i) || integer(L, i); }
bool tensor(lua_State* L, int i) {
  return test<Tensor>(L, i) || test<StateRef>(L, i) || test<Scalar>(L, i) || test<Host>(L, i);
}
bool value(lua_State* L, int i) { return table(L, i) || integer(L, i) || tensor(L, i); }
bool operand(lua_State* L, int i) { return number(L, i) || tensor(L, i); }
template <class T>
bool object(lua_State* L, int i) {
  return test<T>(L, i) != nullptr;
}

const ApiType kTypes[] = {
    {"any", "any", "a value", any},
    {"boolean", "boolean", "true or false", boolean},
    {"number", "number", "a number", number},
    {"integer", "integer", "an integer", integer},
    {"string", "string", "a string", text},
    {"dtype", "orrery.DType", "a dtype such as 'f32'", text},
    {"table", "table", "a table", table},
    {"function", "function", "a function", function},
    {"integers", "integer|integer[]", "an integer or a list of integers", integers},
    {"tensor", "orrery.Tensor", "a tensor", tensor},
    {"operand", "orrery.Tensor|number", "a tensor or a number", operand},
    {"HostTensor", "orrery.HostTensor", "a HostTensor", object<Host>},
    {"State", "orrery.State", "a parameter or state", object<StateRef>},
    {"Scalar", "orrery.Scalar", "an orrery.input", object<Scalar>},
    {"Field", "orrery.Field", "a batch field", object<Field>},
    {"Run", "orrery.Run", "a run", object<RunRef>},
    {"StepResult", "orrery.StepResult", "a step's result", object<Result>},
    {"Program", "orrery.Program", "a compiled function", object<Compiled>},
    {"Dataset", "orrery.Dataset", "a dataset", object<DatasetRef>},
    {"World", "orrery.World", "a world or a group of it", object<World>},
    {"Handle", "orrery.Handle", "a handle of an async word", object<Handle>},
    {"Draft", "orrery.Draft", "a program under edit", object<Draft>},
    {"value", "orrery.Value|orrery.Tensor|integer", "a value of the program", value},
    {"Region", "orrery.Region", "a region", object<Region>},
    {"rest", "any", "values", any},
    {"options", "table", "a table of options", table},
};

}  // namespace

const ApiType& api_type(const std::string& name) {
  for (const ApiType& type : kTypes) {
    if (name == type.name) return type;
  }
  fail(ORR_FAILED, "the API table names an unknown type '{}'", name);
}

}  // namespace orrery::lua
