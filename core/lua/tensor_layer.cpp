// SPDX-License-Identifier: Apache-2.0
//
// The ops that layers are made of: normalisation, attention, losses, dropout.
#include "lua/api.h"
#include "lua/objects.h"
#include "program/build.h"

namespace orrery::lua {
namespace {

ValueId optional_value(lua_State* L, int index, const char* option) {
  lua_getfield(L, index, option);
  const ValueId value = lua_isnil(L, -1) ? kNone : value_at(L, -1);
  lua_pop(L, 1);
  return value;
}

int softmax(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::softmax(program, value_at(L, 1)));
  return 1;
}

int layernorm(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::layernorm(program, value_at(L, 1), value_at(L, 2), value_at(L, 3),
                                  lua_tonumber(L, 4)));
  return 1;
}

int rmsnorm(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::rmsnorm(program, value_at(L, 1), value_at(L, 2), lua_tonumber(L, 3)));
  return 1;
}

int attention(lua_State* L) {
  Program& program = program_here(L);
  std::optional<double> scale;
  if (lua_getfield(L, 4, "scale") != LUA_TNIL) scale = lua_tonumber(L, -1);
  lua_getfield(L, 4, "dropout");
  const double rate = lua_tonumber(L, -1);
  if (!(rate >= 0 && rate < 1))
    fail(ORR_INVALID, "attention: dropout is {}, expected 0 <= dropout < 1", rate);
  push_tensor(L, build::attention(program, value_at(L, 1), value_at(L, 2), value_at(L, 3),
                                  option_int(L, 4, "heads"), option_bool(L, 4, "causal"), scale,
                                  tracing_training() ? rate : 0));
  return 1;
}

int cross_entropy(lua_State* L) {
  Program& program = program_here(L);
  std::optional<int64_t> ignore;
  if (lua_getfield(L, 3, "ignore") != LUA_TNIL) ignore = to_integer(L, -1, "ignore");
  push_tensor(L, build::cross_entropy(program, value_at(L, 1), value_at(L, 2),
                                      optional_value(L, 3, "weights"), ignore));
  return 1;
}

int dropout(lua_State* L) {
  Program& program = program_here(L);
  const double rate = lua_tonumber(L, 2);
  if (!(rate >= 0 && rate < 1))
    fail(ORR_INVALID, "dropout: rate is {}, expected 0 <= rate < 1", rate);
  push_tensor(L, build::dropout(program, value_at(L, 1), rate));
  return 1;
}

int categorical(lua_State* L) {
  Program& program = program_here(L);
  push_tensor(L, build::categorical(program, value_at(L, 1)));
  return 1;
}

int training(lua_State* L) {
  lua_pushboolean(L, tracing_training());
  return 1;
}

}  // namespace

std::vector<Api> layer_api() {
  const char* t = "orrery.Tensor";
  return {
      {"Tensor",
       "softmax",
       t,
       "exp(x) over its sum along the last dim.",
       softmax,
       {{"self", "tensor"}},
       {}},
      {"orrery",
       "layernorm",
       t,
       "Normalises the last dim to mean 0 and variance 1, then w*x + b.",
       layernorm,
       {{"x", "tensor"}, {"weight", "tensor"}, {"bias", "tensor"}, {"eps", "number", "1e-5"}},
       {}},
      {"orrery",
       "rmsnorm",
       t,
       "Divides the last dim by its root mean square, times w.",
       rmsnorm,
       {{"x", "tensor"}, {"weight", "tensor"}, {"eps", "number", "1e-5"}},
       {}},
      {"orrery",
       "attention",
       t,
       "Scaled dot-product attention of [B,T,heads*d] tensors.",
       attention,
       {{"q", "tensor"}, {"k", "tensor"}, {"v", "tensor"}, {"options", "options"}},
       {{"heads", "integer", nullptr, "how many heads share the last dim"},
        {"causal", "boolean", "false", "a position sees itself and earlier ones only"},
        {"scale", "number", "nil", "factor of the scores; 1/sqrt(d) if left out"},
        {"dropout", "number", "0", "in training, the probability of leaving a weight out"}}},
      {"orrery",
       "cross_entropy",
       t,
       "Mean cross-entropy of logits [...,V] and 0-based labels [...].",
       cross_entropy,
       {{"logits", "tensor"}, {"labels", "tensor"}, {"options", "options", "nil"}},
       {{"weights", "tensor", "nil", "weight of each position"},
        {"ignore", "integer", "nil", "positions with this label do not count"}}},
      {"orrery",
       "dropout",
       t,
       "In training, zeroes elements with probability `rate`, scales the rest.",
       dropout,
       {{"x", "tensor"}, {"rate", "number"}},
       {}},
      {"orrery",
       "categorical",
       t,
       "Draws a 0-based class from each row of logits [R,C].",
       categorical,
       {{"logits", "tensor"}},
       {}},
      {"orrery",
       "training",
       "boolean",
       "Whether the function being traced is a training step.",
       training,
       {},
       {}},
  };
}

}  // namespace orrery::lua
