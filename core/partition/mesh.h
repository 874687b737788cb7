// SPDX-License-Identifier: Apache-2.0
//
// How a step is spread: the mesh axes that strategies made, and how the batch's microbatches are
// dealt to ranks. Filled by the strategies' editing calls (edit/edit.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "partition/timetable.h"
#include "program/axes.h"
#include "program/program.h"
#include "program/train.h"

struct orr_driver;

namespace orrery {

struct Axis {
  std::string name;
  int size = 1;
  std::string strategy;  // who made it
};

struct Reduction {
  std::string axis;
  int64_t bucket = 0;
  std::string origin;  // strategy
};

// How a parameter's training is cut over the ranks that share the batch (partition/shard/units.h).
struct Sharded {
  std::string axis, origin;  // axis: that of the batch, or the inner half of it
  int unit = 0;              // parameters of equal unit travel together
  int owner = kNone;         // the coordinate that holds them whole; kNone: even pieces for all
  int what = 0;              // ORR_SHARD_STATE, _GRADIENT, _PARAM
  bool keep = false;         // gathered parameters stay from forward to backward
  int64_t ahead = 1;         // units gathered ahead of the one in use
};

// An axis seen as two: `inner` varies fastest.
struct SplitAxis {
  std::string axis, outer, inner;
  int inner_size = 1;
};

// A value that is to lie in parts of `dim`; `by` is the Lua line of the strategy that asks for it.
struct PartsAsked {
  int dim = 0;
  std::string by = {};
};

// What strategies ask of the ranks of one axis that share the work on every sample.
struct Placing {
  std::string axis, origin;
  std::map<std::string, PartsAsked> cuts;  // by name of the parameter
  std::map<ValueId, PartsAsked> values;    // batch fields and what is computed
  // What a parameter's dim consists of (Cut::segments), as the step reads it; of programs that do
  // not.
  std::map<std::string, Dims> segments = {};
  int scatter = kNone;  // activations that are sums may be scattered over this dim
  int chunks =
      0;  // sums over a cut dim are trees of so many; 0: of one for each rank, in rank order
};

// A program of its own over the states of a step, which runs after every `every` steps. A hook
// writes it once for each of `rounds`, which take turns.
struct Periodic {
  std::string origin, line;
  int every = 1;
  std::function<void(Program&, int round)> write;
  int n_rounds = 1;
  std::vector<std::shared_ptr<const Program>> rounds = {};
};

// A program over states of the step and of its own that one rank runs beside the step.
struct Beside {
  std::string name;
  int rank = 0;
  std::shared_ptr<Program> program;
};

// A strategy that takes over how ranks run what they compute (orrery/driver.h).
struct Driving {
  std::string origin, line;                  // strategy, its Lua file:line
  std::shared_ptr<const orr_driver> driver;  // null: the ranks take steps together
  std::function<void(Program& step, const std::vector<int64_t>& leaf_first)> write;
  std::map<std::string, ValueId> gradients;  // as the optimizer gets them, by the parameter
  std::vector<Beside> programs;
  bool on() const { return driver != nullptr; }
  std::string remedy() const;  // what to do instead
};

// Of parameters and states that are kept in another tier between uses (Value::tier).
struct Offload {
  bool used = false;
  std::string
      directory;  // of the files of Tier::disk; "": the run's, or the system's for temporary files
};

// What a strategy does once the update is written. One that decides over the whole step comes last,
// and `what` names what is one for all ranks.
struct CompleteHook {
  std::string origin, line, what;
  bool decides = false;
  std::function<void(Program&, ValueId loss, ValueId squared_norm)> call;
};

// What strategies ask of differentiation.
struct Asked {
  ValueId cotangent = kNone;  // what multiplies the loss; kNone: 1
};

struct Mesh {
  int world = 1;
  std::vector<Axis> axes;  // outermost first: the last one varies fastest with the rank
  // The axes that deal the batch, as one: "outer*inner"; "" if none. Those that train apart come
  // first: each of their coordinates has samples that follow one another.
  std::string batch_axis;
  // The outermost of them whose coordinates train apart, each on its own part of the batch: sums
  // that states are updated from close over the others alone (partition/apart.h). "": there are
  // none.
  std::string apart;
  int dedicated = 0;                     // its first ranks that get no microbatch,
  std::string dedicated_by;              // and the strategy that keeps them free
  std::map<ValueId, Reduction> reduced;  // gradients
  std::vector<SplitAxis> split_axes;     // axes that are also used in halves
  std::vector<GradientHook> exchanges;   // what becomes of gradients instead of their sum
  std::vector<Periodic> periodic;
  std::vector<CompleteHook> completing;
  Driving driving;
  bool alone = false;  // a rank runs its microbatches as if there were no others,
  std::optional<std::pair<int64_t, int64_t>> only;  // these instead of those dealt to it
  std::map<std::string, Sharded> sharded;           // by name of the parameter
  bool one_by_one = false;    // microbatches run one after another, not in one call,
  std::string slicer;         // which this strategy asked for
  std::string pipe_axis;      // the axis that deals the stages, "" if none
  std::vector<int> chunk_at;  // by chunk of the model: the coordinate that holds it
  // Of periodic programs: the coordinates that hold each parameter and state of the step.
  std::map<std::string, std::vector<int>> held_at;
  std::string scheduler;  // the strategy that deals them and orders the actions:
  // The first call for a number of microbatches asks the strategy, or the script. [main thread]
  std::function<std::shared_ptr<const Timetable>(int microbatches)> make_timetable;
  std::vector<Placing> placed;  // one for each axis, in the order in which they were asked for
  Asked asked;
  Offload offload;
  std::vector<std::string> remarks;
  std::string placed_axis() const;  // the axes of `placed`, as one
  // Those of them that deal the batch: a value cut over them holds the samples of all their ranks.
  std::string gathered_axis() const;
  int batch_ranks() const;  // size of the batch axis, 1 if none
  int workers() const { return batch_ranks() - dedicated; }
  // Those of the axes that deal the batch over which gradients are summed, and their ranks.
  std::string gradient_axis() const { return without_axis(batch_axis, apart); }
  int gradient_ranks() const { return size_of(gradient_axis()); }
  // The strategy that made the outermost axis of a product, "" if there is none.
  std::string maker_of(const std::string& product) const;
  // An axis may be a product (program/axes.h).
  int size_of(const std::string& axis) const;               // 1 if there is none
  int coordinate(const std::string& axis, int rank) const;  // 0 if there is none
  // The rank that differs from `rank` only in its coordinate on `axis`.
  int peer(const std::string& axis, int coordinate, int rank) const;
};

std::vector<MeshAxis> axes_of(const Mesh& mesh);
// Of the programs that run beside a step, which have no batch.
Mesh mesh_of_periodic(Mesh step);

// The microbatches [first[r], first[r+1]) belong to rank r of the batch axis; as even as possible,
// but that the first `idle` ranks get none.
std::vector<int64_t> deal_microbatches(int64_t microbatches, int ranks, int dedicated = 0);
inline std::vector<int64_t> deal_microbatches(int64_t microbatches, const Mesh& mesh) {
  return deal_microbatches(microbatches, mesh.batch_ranks(), mesh.dedicated);
}

// The microbatches of the ranks that differ from one only in their coordinate on `axis`, some of
// the axes that deal the batch: those of coordinate c count as [first[c], first[c+1]) of
// first.back(), one rank's after another's, which is how they lie in the tree of a sum that these
// ranks complete. Each of them counts as having those of all ranks of `gathered`, other axes that
// deal the batch.
std::vector<int64_t> microbatches_among(const Mesh& mesh, const std::vector<int64_t>& dealt,
                                        const std::string& axis, int rank,
                                        const std::string& gathered = "");

}  // namespace orrery
