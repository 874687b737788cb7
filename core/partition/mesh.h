// SPDX-License-Identifier: Apache-2.0
//
// How a step is distributed: the mesh axes that strategies made, how the batch's microbatches are
// dealt to ranks, and what else strategies ask of the ranks. The strategies' editing calls fill it
// (edit/edit.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

// A gradient is to be summed over this axis.
struct Reduction {
  std::string axis;
  int64_t bucket = 0;  // gradients of one bucket travel together
  std::string origin;  // the strategy that asks for it
};

// How a parameter's training state is sharded over the ranks that share the batch
// (partition/shard/units.h).
struct Sharded {
  std::string axis, origin;  // axis: the batch axis, or the inner part of it
  int unit = 0;              // parameters of equal unit travel together
  int owner = kNone;         // the coordinate that holds it whole; kNone: every rank has a piece
  int what = 0;              // ORR_SHARD_STATE, _GRADIENT, _PARAM
  bool each = false;         // gathered, and its gradients sent, for each microbatch (orr_shard)
};

// An axis that is also used as the product of two: `inner` varies fastest.
struct SplitAxis {
  std::string axis, outer, inner;
  int inner_size = 1;
};

// A strategy asks that a value be cut along `dim`; `by` is its Lua line.
struct PartsAsked {
  int dim = 0;
  std::string by = {};
};

// What strategies ask of the ranks of one axis that share the work on every sample.
struct Placing {
  std::string axis, origin;
  std::map<std::string, PartsAsked> cuts;  // of parameters, by name
  std::map<ValueId, PartsAsked> values;    // of batch fields and computed values
  // The segments (Placement::segments) of a parameter's cut dim, as the step's program has them.
  // Other programs over the same parameters need them where they do not show them.
  std::map<std::string, Dims> segments = {};
  int scatter = kNone;  // activations that are sums may be scattered over this dim
  // How many chunks a sum over a cut dim is a binary tree of; 0: one chunk for each rank, added in
  // rank order.
  int chunks = 0;
};

// A program over the states of a step that runs after every `every` steps. There may be several
// variants, `rounds`, that take turns; the hook `write` is called once for each.
struct Periodic {
  std::string origin, line;
  int every = 1;
  std::function<void(Program&, int round)> write;
  int n_rounds = 1;
  std::vector<std::shared_ptr<const Program>> rounds = {};
};

// A program that one rank runs beside the step, over states of the step and of its own.
struct Beside {
  std::string name;
  int rank = 0;
  std::shared_ptr<Program> program;
};

// A strategy's driver: it decides when a rank runs which program (orrery/driver.h).
struct Driving {
  std::string origin, line;                  // strategy, its Lua file:line
  std::shared_ptr<const orr_driver> driver;  // null: the ranks take steps together
  std::function<void(Program& step, const std::vector<int64_t>& leaf_first)> write;
  std::map<std::string, ValueId> gradients;  // as the optimizer gets them, by parameter name
  std::vector<Beside> programs;
  bool on() const { return driver != nullptr; }
  std::string remedy() const;  // for errors: what the user can do instead
};

// Parameters and states that are kept in another memory tier between uses (Value::tier).
struct Offload {
  bool used = false;
  // Of the files of Tier::disk; "": the run's directory, or the system's for temporary files.
  std::string directory;
};

// A strategy's hook that is called once the update is written. One that decides whether the whole
// step counts is called after the others, and `what` names the number that it keeps for all ranks;
// `last` ones are called when all edits are done.
struct CompleteHook {
  enum When : int8_t { step, decides, last };
  std::string origin, line, what;
  When when = step;
  std::function<void(Program&, ValueId loss, ValueId squared_norm)> call;
};

// What strategies ask of the differentiation.
struct Asked {
  ValueId cotangent = kNone;  // the scalar with which backward begins; kNone: 1
};

// How many microbatches the ranks of an axis that deals the batch get, in proportion to each other;
// 0: none. `of` is empty where all get as many.
struct Shares {
  std::string axis, origin;  // origin: the strategy that asked for it
  std::vector<int> of;       // by coordinate
  bool leave_out() const { return std::find(of.begin(), of.end(), 0) != of.end(); }
};

struct Mesh {
  int world = 1;
  std::vector<Axis> axes;  // outermost first: the last one varies fastest with the rank
  // The product of the axes that deal the batch: "outer*inner"; "" if there is none. Axes whose
  // coordinates train apart come first, so that each of these has consecutive samples.
  std::string batch_axis;
  // The outermost axes of `batch_axis` whose coordinates train apart, each on its own part of the
  // batch: sums from which states are updated are completed over the other axes only
  // (partition/apart.h). "": there are none.
  std::string apart;
  Shares shares;
  std::map<ValueId, Reduction> reduced;  // gradients that are summed over an axis
  std::vector<SplitAxis> split_axes;
  std::vector<GradientHook> exchanges;  // hooks that run in place of gradients' sums
  std::vector<Periodic> periodic;
  std::vector<CompleteHook> completing;
  Driving driving;
  bool alone = false;  // a rank runs its microbatches as if there were no other ranks
  // Where `alone`: the rank has these microbatches, [first, second), not those dealt to it.
  std::optional<std::pair<int64_t, int64_t>> only;
  std::map<std::string, Sharded> sharded;  // by name of the parameter
  // Sums over the batch need not have the bits of one process (`reduce = "fast"` of compile): all
  // that a rank adds up is one leaf of their tree, however many microbatches it has.
  bool fast_sums = false;
  bool one_by_one = false;    // microbatches run one after another, not in one call
  std::string slicer;         // the strategy that asked for `one_by_one`
  std::string pipe_axis;      // the axis that deals the stages, "" if none
  std::vector<int> chunk_at;  // by chunk of the model: the coordinate that holds it
  // For periodic programs: the coordinates that hold each parameter and state of the step.
  std::map<std::string, std::vector<int>> held_at;
  std::string scheduler;  // the strategy that deals the stages and orders the actions
  // The first call for a number of microbatches asks the strategy, or the script. [main thread]
  std::function<std::shared_ptr<const Timetable>(int microbatches)> make_timetable;
  std::vector<Placing> placed;  // one for each axis, in the order in which they were asked for
  Asked asked;
  Offload offload;
  // A rank's backend or device has one exchange in progress at a time (lower/channel.h).
  bool one_lane = false;
  std::vector<std::string> remarks;
  std::string placed_axis() const;  // the product of the axes of `placed`
  // The axes of `placed` that also deal the batch: a value that is cut over them holds the samples
  // of all their ranks.
  std::string gathered_axis() const;
  int batch_ranks() const;  // size of the batch axis, 1 if none
  // The share of the ranks with this coordinate on `batch_axis`, and the sum of all: the fewest
  // microbatches of which each rank with a share gets one.
  int share_of(int coordinate) const;
  int workers() const;
  // The axes that deal the batch and over which gradients are summed, and how many ranks they have.
  std::string gradient_axis() const { return without_axis(batch_axis, apart); }
  int gradient_ranks() const { return size_of(gradient_axis()); }
  // The axes over which gradients are summed, without this one of them, or the inner half of one.
  // Ranks that differ only on these hold the same shard of what is cut over it.
  std::string replicas_of(const std::string& axis) const;
  // The strategy that made the outermost axis of a product, "" if there is none.
  std::string maker_of(const std::string& product) const;
  // An axis may be a product (program/axes.h).
  int size_of(const std::string& axis) const;               // 1 if there is none
  int coordinate(const std::string& axis, int rank) const;  // 0 if there is none
  // The rank that differs from `rank` only in its coordinate on `axis`.
  int peer(const std::string& axis, int coordinate, int rank) const;
  // Sizes and strides (the difference of rank between neighbours) of an axis's factors, without
  // those of size 1; adjacent ones count as one. Axes of equal shape make the same groups of ranks.
  using Shape = std::vector<std::pair<int, int>>;
  Shape shape_of(const std::string& axis, int rank) const;
};

std::vector<MeshAxis> axes_of(const Mesh& mesh);
// The mesh of the periodic programs of a step, which have no batch.
Mesh mesh_of_periodic(Mesh step);

// Deals microbatches as evenly as possible: rank r of the batch axis gets [first[r], first[r+1]) of
// the result `first`; in proportion to their shares where the mesh says so.
std::vector<int64_t> deal_microbatches(int64_t microbatches, int ranks);
std::vector<int64_t> deal_microbatches(int64_t microbatches, const Mesh& mesh);
// Whether this gives every rank of the batch axis as many.
bool deals_evenly(int64_t microbatches, const Mesh& mesh);

// The microbatches of the ranks that differ from `rank` only in their coordinate on `axis`, which
// is made of axes that deal the batch. In the result `first`, coordinate c has [first[c],
// first[c+1]) of first.back(): the place of its microbatches in the tree of a sum that these ranks
// complete. `gathered` are other axes that deal the batch: each coordinate counts as having the
// microbatches of all their ranks. With fast sums, all microbatches of a coordinate count as one.
std::vector<int64_t> microbatches_among(const Mesh& mesh, const std::vector<int64_t>& dealt,
                                        const std::string& axis, int rank,
                                        const std::string& gathered = "");

}  // namespace orrery
