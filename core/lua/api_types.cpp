// SPDX-License-Identifier: Apache-2.0
//
// The argument types that rows of the API table may name.
#include "lua/api.h"
#include "lua/objects.h"
#include "lua/world.h"

namespace orrery::lua {
namespace {

bool any(lua_State* L, int i) { return !lua_isnone(L, i); }
bool integer(lua_State* L, int i) {
  int exact = 0;
  if (lua_type(L, i) == LUA_TNUMBER) lua_tointegerx(L, i, &exact);
  return exact != 0;
}
template <int type>
bool plain(lua_State* L, int i) {
  return lua_type(L, i) == type;
}
bool list(lua_State* L, int i) { return lua_istable(L, i) && list_fault(L, i).empty(); }
bool integers(lua_State* L, int i) { return list(L, i) || integer(L, i); }
bool value(lua_State* L, int i) { return integer(L, i) || lua_istable(L, i) || is_tensor(L, i); }
bool operand(lua_State* L, int i) { return lua_type(L, i) == LUA_TNUMBER || is_tensor(L, i); }
template <class T>
bool object(lua_State* L, int i) {
  return test<T>(L, i) != nullptr;
}

const ApiType kTypes[] = {
    {"any", "any", "a value", any},
    {"boolean", "boolean", "true or false", plain<LUA_TBOOLEAN>},
    {"number", "number", "a number", plain<LUA_TNUMBER>},
    {"integer", "integer", "an integer", integer},
    {"string", "string", "a string", plain<LUA_TSTRING>},
    {"dtype", "orrery.DType", "a dtype such as 'f32'", plain<LUA_TSTRING>},
    {"table", "table", "a table", plain<LUA_TTABLE>},
    {"list", "any[]", "a list", list},
    {"function", "function", "a function", plain<LUA_TFUNCTION>},
    {"integers", "integer|integer[]", "an integer or a list of integers", integers},
    {"Tensor", "orrery.Tensor", "a tensor", is_tensor},
    {"operand", "orrery.Tensor|number", "a tensor or a number", operand},
    {"HostTensor", "orrery.HostTensor", "a HostTensor", object<Host>},
    {"State", "orrery.State", "a parameter or state", object<StateRef>},
    {"Scalar", "orrery.Scalar", "an orrery.input", object<Scalar>},
    {"Field", "orrery.Field", "a batch field", object<Field>},
    {"Run", "orrery.Run", "a run", object<RunRef>},
    {"StepResult", "orrery.StepResult", "a step's result", object<Result>},
    {"Program", "orrery.Program", "a compiled function", object<Compiled>},
    {"Dataset", "orrery.Dataset", "a dataset", object<DatasetRef>},
    {"Tokenizer", "orrery.Tokenizer", "a tokenizer", object<TokenizerRef>},
    {"Weights", "orrery.Weights", "a file of weights", object<WeightsRef>},
    {"World", "orrery.World", "a world or a group of it", object<World>},
    {"Handle", "orrery.Handle", "a handle of an async call", object<Handle>},
    {"Draft", "orrery.Draft", "a program under edit", object<Draft>},
    {"value", "orrery.Value|orrery.Tensor|integer", "a value of the program", value},
    {"Region", "orrery.Region", "a region", object<Region>},
    {"rest", "any", "values", any},
    {"options", "table", "a table of options", plain<LUA_TTABLE>},
};

}  // namespace

const ApiType* api_type(std::string_view name) {
  for (const ApiType& type : kTypes)
    if (name == type.name) return &type;
  return nullptr;
}

}  // namespace orrery::lua
