// SPDX-License-Identifier: Apache-2.0
//
// Compiled programs as the script uses them. `Run` trains: loss, gradients and update over a batch
// that is cut into microbatches. `Function` computes outputs from inputs (sampling, one optimizer
// step). Both trace at the first call with each set of input shapes, over states that they share.
// [main thread]
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "edit/blueprint.h"
#include "program/program.h"
#include "program/state.h"
#include "program/train.h"

namespace orrery {

using Fields = std::map<std::string, ValueId>;
using Outputs = std::vector<std::pair<std::string, ValueId>>;

// One tensor of a batch. It describes the whole tensor, of which each rank loads its own rows:
// `load` writes rows [begin, end) of the first dim, row-major, to `to`.
struct BatchField {
  Type type;
  std::function<void(int64_t begin, int64_t end, std::byte* to)> load;
  uint64_t identity = 0;  // a digest of which samples these are: the same on all ranks
};
using BatchFields = std::map<std::string, BatchField>;

struct RunSpec {
  // Builds the loss (a mean over the batch) and auxiliary outputs from the batch's values.
  std::function<std::pair<ValueId, Outputs>(Program&, const Fields&)> loss;
  std::vector<std::shared_ptr<State>> params;  // those to train; used in natural order of names
  std::vector<std::shared_ptr<State>> states;  // all of the model, trained or not
  // Parameters and buffers that the script has made and can reach. A checkpoint gives values to all
  // that have a name in it; it has those that the script itself keeps and has changed.
  std::function<std::vector<std::shared_ptr<State>>()> script_states;
  std::function<bool(const std::shared_ptr<State>&)> kept_by_script;
  // Builds the update of one parameter: returns its new value, declares new optimizer states with
  // Program::update. Empty: no update; gradients stay in `gradients`.
  std::function<ValueId(Program&, const std::shared_ptr<State>&, ValueId value, ValueId gradient)>
      update;
  std::vector<std::shared_ptr<State>> gradients;  // parallel to params, if `update` is empty
  // The runtime scalars of a step (from 1), by the names that the program's scalar_inputs have.
  std::function<std::map<std::string, double>(int64_t step)> scalars;
  int64_t microbatches = 0;        // 0: one for each rank that shares the batch
  std::vector<ClippedNorm> clips;  // of gradients' norms
  bool grad_norm = false;          // results tell the norm, as they do with clipping
  bool local = false;              // only this rank runs it, whatever the world (value_and_grad)
  bool fast = false;               // matrix products may sum in any order, and use TF32
  bool fast_sums = false;          // sums over the batch too (Mesh::fast_sums)
  std::vector<StrategyUse> strategies;
  std::string stream;   // of its random numbers; differs from that of the script's other programs
  std::string told_as;  // what observers call it (orr_event_record.run)
  std::string line;     // Lua file:line of the compile call
};

// The outcome of a step: "loss", with clipping or on request "grad_norm", and auxiliary outputs by
// name. The program has already made them equal on all ranks.
class StepResult {
 public:
  virtual ~StepResult() = default;
  virtual double get(const std::string& name) = 0;  // throws Error with the step and Lua line
  virtual std::vector<std::string> names() const = 0;
  std::map<std::string, HostTensor> tensors;  // outputs that have dims
  int64_t step = 0;
};

// What a run has used, to be compared with its plan.
struct Counters {
  int64_t steps = 0;          // trained by this process
  uint64_t arena_bytes = 0;   // allocated for transients, shared by all programs of the process
  uint64_t bytes_sent = 0;    // by this rank in those steps; set-up and evaluation do not count
  uint64_t bytes_copied = 0;  // between memory tiers, both ways, in those steps
  // The same numbers by the plans of those steps: the largest arena, and the bytes that strategies
  // predict.
  uint64_t planned_arena_bytes = 0, predicted_bytes_sent = 0, planned_bytes_copied = 0;
  double checkpoint_seconds = 0;  // how long the script waited for checkpoints
  uint64_t checkpoint_bytes = 0;  // copied in memory while a checkpoint is written beside steps
};

// How a checkpoint is saved.
struct SaveHow {
  bool beside = false;              // it is copied, and written while the next steps are taken
  std::string lock_in;              // the directory that this process locks; "": the checkpoint's
  std::vector<std::string> remove;  // checkpoints that are removed once this one is complete
  std::string format;               // of a plugin (store/checkpoint_format.h); "": Orrery's own
};

class Run {
 public:
  virtual ~Run() = default;
  static std::unique_ptr<Run> make(RunSpec spec);

  // `step` trains on one batch; `evaluate` computes its loss (no dropout, no update).
  virtual std::shared_ptr<StepResult> step(const BatchFields& batch) = 0;
  virtual std::shared_ptr<StepResult> evaluate(const BatchFields& batch) = 0;
  // Evaluates batches until there are no more, and returns what one batch of all their samples
  // would give (program/over_batches.h); values of samples one batch after another. Throws Error
  // if a loss function needs all samples in one batch and there are several.
  using Batches = std::function<std::optional<BatchFields>()>;
  virtual std::shared_ptr<StepResult> evaluate_all(const Batches& next) = 0;
  virtual int64_t steps_done() const = 0;
  // Whether all ranks take each step together. Otherwise each has its own pace, and they meet only
  // to evaluate, to save and to read states.
  virtual bool in_step() const = 0;

  // A directory checkpoint (store/checkpoint.h): parameters, optimizer state, step count, and the
  // caller's `extra` (data position and the like, as text). One that is written beside steps is
  // completed at the beginning of a later step or evaluation, at the next save or load, or by
  // finish_save; these throw its error. Ranks that do not take each step together wait for it at
  // once. Collective.
  virtual void save(const std::string& directory, const std::string& extra,
                    const SaveHow& how = {}) = 0;
  virtual void finish_save() = 0;
  virtual std::string load(const std::string& directory) = 0;  // returns `extra`

  virtual Counters counters() = 0;

  // Replaces the stack and the number of microbatches. Throws Error once a step has been compiled.
  virtual void use(std::vector<StrategyUse> stack, int64_t microbatches) = 0;

  // The source of plans for a step on a batch of these shapes; runs and allocates nothing.
  virtual PlanSource plan_source(const BatchFields& batch) = 0;
};

// A real number stands for a 0-d tensor that takes the dtype of what it meets, with all its digits.
using Argument = std::variant<HostTensor, double>;

class Function {
 public:
  virtual ~Function() = default;
  // `body` gets the inputs' values in order and returns named outputs; it may declare updates.
  // `stream` and `told_as` as of RunSpec.
  static std::unique_ptr<Function> make(
      std::function<Outputs(Program&, const std::vector<ValueId>&)> body, std::string line,
      std::string stream, std::string told_as);
  virtual std::vector<HostTensor> call(const std::vector<Argument>& arguments,
                                       const std::map<std::string, double>& scalars = {}) = 0;
};

// The code of errors, and exit code, of a run whose results cannot be trusted: what was computed
// twice differs.
constexpr int kMiscomputed = 76;

// Whether a training step is being traced now, in which ops such as dropout are active.
bool tracing_training();

// Settings of this process from the command line; set before the script starts.
struct RuntimeOptions {
  std::vector<std::string> kernels;        // empty: every host plugin that works here
  std::string comm = ORRERY_DEFAULT_COMM;  // overridden by orrery.init{comm=}
  uint64_t link_speed = 0;  // bytes a second of simulated slower links; 0: none are simulated
  bool check_nan = false;   // programs end at the first op that makes NaN or infinity
  int64_t verify = 0;       // every so many steps one is computed twice; 0: none is
  bool fallback = false;    // where the newest checkpoint is damaged, an older one is loaded
  bool plan_only = false;   // the script runs to make a plan; no step is taken
  int plan_ranks = 1;
  uint64_t seed = 1;
  std::string run_directory;  // that the user has named; "": there is none
  std::string records;        // then the one that is made for what is recorded; "": there is none
  std::map<std::string, std::string> observe;  // options of observers, by name; "off": not used
};
RuntimeOptions& runtime_options();

// Allocation and access of states. `materialize` gives memory and initial values to states that
// have none yet. Reading and writing copy whole tensors. Reading is collective where ranks hold
// parts. When writing, all ranks pass the same whole tensor, and each stores its part.
void materialize(const std::vector<std::shared_ptr<State>>& states);
HostTensor read_state(State& state);
void write_state(State& state, const HostTensor& value);
// The value of one coordinate of a varying state; collective.
HostTensor read_of(State& state, int32_t coordinate);
// How many coordinates have values of their own.
int32_t coordinates_of(const State& state);
// Writes this rank's part of the stored value of its coordinate. If there are more or fewer values
// than coordinates, every coordinate gets one value, made of all by the rule State::leave.
using StoredPart = std::function<void(int32_t coordinate, const Part& part, std::byte* to)>;
void write_stored(State& state, int32_t values, const StoredPart& read);
// Whether a state still has the value that Initial::read has given it.
bool is_as_loaded(const State& state);

// Completes the checkpoints that are written beside steps, and throws the first error. Collective.
void finish_saves();
// The same where the script has failed: completes what needs no other rank, and throws nothing.
void end_saves() noexcept;

// Becomes the writer of a directory of several checkpoints: rank 0 does, or with `alone` this rank.
// Collective without `alone`; throws Error.
void begin_series(const std::string& directory, bool alone, const std::string& line);

// The states of a safetensors file, and their names in it.
struct WeightsFile {
  std::string path;
  std::vector<std::shared_ptr<State>> states;
  std::vector<std::string> names;
};
// Writes the files together (store/weights.h); rank 0 does. One file has the path itself.
// Collective; throws Error, on all ranks, with `line`.
void save_weights(const std::string& path, const std::vector<WeightsFile>& files,
                  const std::string& line);

// The world, and collectives that the core itself posts in the same order on all ranks. In a world
// of one rank they return x; `line` names the call. comm/collectives.h has those of scripts.
struct WorldInfo {
  int rank = 0, size = 1, local_rank = 0, local_size = 1;
};
WorldInfo world_info();
HostTensor world_allreduce(const HostTensor& x, const std::string& op, const std::string& line);
HostTensor world_broadcast(const HostTensor& x, int root, const std::string& line);
HostTensor world_allgather(const HostTensor& x,
                           const std::string& line);  // along dim 1, may be uneven

}  // namespace orrery
