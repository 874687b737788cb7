// SPDX-License-Identifier: Apache-2.0
//
// Files of weights in Lua: what orrery.load and a module's load_weights and save_weights are
// made of (scripts/orrery/data.lua, weights.lua).
#include "lua/call.h"

namespace orrery::lua {
namespace {

// {name = tensor}.
Pushed load(lua_State* L, const std::string& path) {
  const Weights weights(path);
  lua_newtable(L);
  for (const std::string& name : weights.names()) {
    push(L, Host{weights.read(name)});
    lua_setfield(L, -2, name.c_str());
  }
  return {1};
}

WeightsRef open(const std::string& path) { return {std::make_shared<const Weights>(path)}; }

std::vector<std::string> names(WeightsRef& self) { return self.file->names(); }

// The tensor that a state is to have.
HostTensor read_for(WeightsRef& self, const std::string& name, StateRef& to, bool transpose) {
  const Type& wanted = to.state->type;
  HostTensor tensor = self.file->read(name, wanted.dtype);
  if (transpose) tensor = transposed(tensor, name);
  if (tensor.type.dims != wanted.dims)
    fail(ORR_INVALID, "{}: '{}' is {}{}, {} of the model is {}; map may rename and transpose it",
         self.file->path(), name, to_string(tensor.type.dims), transpose ? " transposed" : "",
         to.state->name, to_string(wanted.dims));
  return tensor;
}

void save(lua_State* L, const std::string& path, const Table& files) {
  save_weights(path,
               list_at(L, files.index,
                       [](lua_State* L, int at) {
                         lua_getfield(L, at, "states");
                         lua_getfield(L, at, "paths");
                         lua_getfield(L, at, "file");
                         WeightsFile file{to_text(L, -1, "file"), states_at(L, lua_absindex(L, -3)),
                                          texts_at(L, lua_absindex(L, -2), "name")};
                         lua_pop(L, 3);
                         return file;
                       }),
               user_line(L));
}

}  // namespace

std::vector<Api> weights_api() {
  return {
      {"engine.load_weights(path: string) -> table; All tensors of a file of weights by name.",
       call<load>},
      {"engine.weights(path: string) -> Weights; A file of weights, whose tensors are read one by "
       "one.",
       call<open>},
      {"Weights:names() -> string[]; Of all tensors, sorted.", call<names>},
      {"Weights:read(name: string, to: State, transpose: boolean) -> HostTensor; A tensor as the "
       "state wants it.",
       call<read_for>},
      {"engine.save_weights(path: string, files: table); Writes safetensors files, each {file, "
       "states, "
       "paths}, and an index if there are several, in place of what was saved to the path before.",
       call<save>},
  };
}

}  // namespace orrery::lua
