// SPDX-License-Identifier: Apache-2.0
//
// What scripts hold: the userdata classes, and the trace that symbolic tensors belong to.
#pragma once

#include <orrery/strategy.h>

#include <memory>
#include <string>
#include <vector>

#include "data/order.h"
#include "lua/conditions.h"
#include "lua/layer.h"
#include "lua/trace_record.h"
#include "run/run.h"
#include "store/weights.h"

namespace orrery::lua {

// A value of the program being traced; useless, and refused, in any other trace.
struct Tensor {
  static constexpr const char* kClass = "Tensor";
  ValueId id;
  uint64_t trace;
};

// A parameter, buffer or gradient. In a trace it stands for its current value.
struct StateRef {
  static constexpr const char* kClass = "State";
  std::shared_ptr<State> state;
};

struct Host {
  static constexpr const char* kClass = "HostTensor";
  HostTensor value;
};

// orrery.input: a number that may change between steps without a new trace.
struct Scalar {
  static constexpr const char* kClass = "Scalar";
  std::string name;
  std::shared_ptr<double> value;
};

struct Field {
  static constexpr const char* kClass = "Field";
  BatchField value;
};

struct RunRef {
  static constexpr const char* kClass = "Run";
  std::unique_ptr<Run> run;
  std::shared_ptr<TraceRecord> record;
  Function unchanged;  // fails if the script has replaced parts of the model
  bool alone;          // each rank has its own
  std::string saved;   // the directory of the script's last save
};

struct Result {
  static constexpr const char* kClass = "StepResult";
  std::shared_ptr<StepResult> result;
};

struct Compiled {
  static constexpr const char* kClass = "Program";
  std::shared_ptr<orrery::Function> function;
  std::shared_ptr<TraceRecord> record;
};

// A program while a strategy of the script's own edits it; closed afterwards.
struct Draft {
  static constexpr const char* kClass = "Draft";
  orr_program* program;
  const orr_edit* edit;
};

struct DatasetRef {
  static constexpr const char* kClass = "Dataset";
  Samples samples;
};

struct TokenizerRef {
  static constexpr const char* kClass = "Tokenizer";
  std::shared_ptr<const Tokenizer> tokenizer;
};

struct WeightsRef {
  static constexpr const char* kClass = "Weights";
  std::shared_ptr<const Weights> file;
};

// Names the module that ops are made in until it is closed.
struct Region {
  static constexpr const char* kClass = "Region";
  size_t depth;
};

// -- the trace ------------------------------------------------------------------------------------

// While it lives, ops go to `program`. Traces may nest; each has regions of its own.
class Trace {
 public:
  Trace(lua_State* L, Program& program);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static Trace* current();

  Program& program() const { return program_; }
  uint64_t serial() const { return serial_; }

 private:
  Program& program_;
  uint64_t serial_;
  std::vector<std::string> outer_regions_;
  ConditionWatch conditions_;
  Trace* outer_;
};

std::vector<std::string>& regions();

// Calls a function of the script as tensor code of `program`, with what `give(L)` pushes; returns
// what `take(L, first)` makes of the results, the first of which is at `first`.
template <class Give, class Take>
auto call_traced(const Function& function, Program& program, int n_results, Give&& give,
                 Take&& take) {
  lua_State* L = function.state();
  const StackTop top(L);
  const Trace trace(L, program);
  luaL_checkstack(L, LUA_MINSTACK, "a traced function");
  function.push();
  give(L);
  protected_call(L, lua_gettop(L) - top.at - 1, n_results);
  return take(L, top.at + 1);
}

// The program being traced, with its site set to the user's line. Throws outside a trace.
Program& program_here(lua_State* L);

void push_tensor(lua_State* L, ValueId id);
ValueId value_at(lua_State* L, int index);
Operand operand_at(lua_State* L, int index);
bool is_tensor(lua_State* L, int index);

// A HostTensor argument: a HostTensor, a number (0-d) or a nested list.
HostTensor host_at(lua_State* L, int index);
// The numbers of a list of lists; integers give i64, others f32, unless `dtype` is not 0.
HostTensor host_from_table(lua_State* L, int index, int32_t dtype);
// Element i of x, as Lua sees it.
void push_element(lua_State* L, const HostTensor& x, int64_t i);

// The inputs (orrery.input) of this process by name, with their values of now.
std::map<std::string, double> scalar_values();

// The states in a State, a list of them, or a module's list: {State, ...}.
std::vector<std::shared_ptr<State>> states_at(lua_State* L, int index);

// What the script has made so far of things that are told apart by the order in which they are
// made, which is the same on all ranks. Begins anew with each script.
struct Ordinals {
  int64_t unnamed = 0;  // states
  // Things that draw random numbers, counted since orrery.seed.
  int64_t drawn = 0;  // states with random initial values
  int64_t runs = 0, runs_alone = 0, functions = 0;
  void begin_anew() { drawn = runs = runs_alone = functions = 0; }
};
Ordinals& ordinals();

// The buffers that the script has made and can still reach, in the order of their making.
std::vector<std::shared_ptr<State>> script_buffers(lua_State* L);

// Throws inside a coroutine: traces run on the main thread of the state.
void require_main_thread(lua_State* L);

}  // namespace orrery::lua
