// SPDX-License-Identifier: Apache-2.0
//
// The userdata classes that scripts use, and the trace that symbolic tensors belong to.
#pragma once

#include <orrery/strategy.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/order.h"
#include "lua/conditions.h"
#include "lua/layer.h"
#include "lua/trace_record.h"
#include "run/run.h"
#include "store/weights.h"

namespace orrery::lua {

// A value of the program that is being traced. Using it in another trace is an error.
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
  Function unchanged;   // throws if the script has replaced parts of the model
  bool alone;           // each rank runs it by itself
  std::string told_as;  // what observers call it (RunSpec)
  std::string saved;    // the directory of the script's last save, or of all its checkpoints
  std::string saved_format = {};         // of the script's last save
  bool in_series = false;                // `saved` has a checkpoint for each step that was saved
  bool stepped = false;                  // has begun a step
  int64_t saved_after = -1;              // the step after which the script has saved last
  std::vector<std::string> probed = {};  // what the next step is asked for
  std::optional<Function> after = {};    // called after each step (begin_series)
  std::optional<Function> first = {};    // called once with the first batch, before it is used
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

// A program while a strategy that is written in Lua edits it; closed afterwards.
struct Draft {
  static constexpr const char* kClass = "Draft";
  orr_program* program;
  const orr_edit* edit;
};

struct DatasetRef {
  static constexpr const char* kClass = "Dataset";
  Samples samples;
  bool told_wrap = false;  // it was said that a pass in order began again
};

struct TokenizerRef {
  static constexpr const char* kClass = "Tokenizer";
  std::shared_ptr<const Tokenizer> tokenizer;
};

struct WeightsRef {
  static constexpr const char* kClass = "Weights";
  std::shared_ptr<const Weights> file;
};

// While it is open, ops are made in this module (Site::region).
struct Region {
  static constexpr const char* kClass = "Region";
  size_t depth;
};

// -- the trace ------------------------------------------------------------------------------------

// During its life, tensor code adds ops to `program`. Traces may nest; each has its own regions.
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

// Calls a function of the script as tensor code of `program`. Its arguments are those that give(L)
// pushes. Returns take(L, first), where `first` is the stack index of the first result.
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

// All rows of a field.
HostTensor loaded(const BatchField& field);
// A HostTensor argument: a HostTensor, a field of a batch, a number (0-d) or a nested list.
HostTensor host_at(lua_State* L, int index);
// A tensor from a nested list. If `dtype` is 0, integers give i64 and other numbers f32.
HostTensor host_from_table(lua_State* L, int index, int32_t dtype);
// Pushes element i of x as a Lua value.
void push_element(lua_State* L, const HostTensor& x, int64_t i);

// The inputs (orrery.input) of this process, by name, with their current values.
std::map<std::string, double> scalar_values();

// The states at `index`: a State, or a list of them, such as a module's.
std::vector<std::shared_ptr<State>> states_at(lua_State* L, int index);

// Counts the objects that are identified by the order in which the script makes them; that order is
// the same on all ranks. The counts begin at 0 with each script.
struct Ordinals {
  int64_t unnamed = 0;  // states without a name
  // Objects that draw random numbers, counted since the last orrery.seed.
  int64_t drawn = 0;  // states with random initial values
  int64_t runs = 0, runs_alone = 0, functions = 0;
  // All runs of all ranks, and all functions, for the names by which observers know them.
  int64_t told_runs = 0, told_functions = 0;
  // The steps of the run that was compiled, loaded or stepped last; -1: there is none.
  int64_t latest_step = -1;
  std::map<std::string, std::string> run_names;  // and the lines of the runs that have them
  void begin_anew() { drawn = runs = runs_alone = functions = 0; }
};
Ordinals& ordinals();

// The parameters and buffers that the script has made and can still reach, in the order in which
// they were made.
std::vector<std::shared_ptr<State>> script_states(lua_State* L);
// Whether it is a buffer, or a parameter that a program of the script has given a value by
// State:update, such as an average of the weights.
bool is_kept_by_script(const std::shared_ptr<State>& state);

// Throws Error inside a coroutine: traces must run in the main thread of the Lua state.
void require_main_thread(lua_State* L);

}  // namespace orrery::lua
