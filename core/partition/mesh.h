// SPDX-License-Identifier: Apache-2.0
//
// How a step is distributed: the mesh axes that strategies made, which microbatches each rank gets
// and in which order it runs them, and how values are to lie. The strategies' editing calls fill it
// (edit/edit.h).
//
// Example: 4 ranks on the axes "d" and "t", each of size 2. Rank 2 has the coordinates (1, 0). If
// "d" is a batch axis, its coordinate 0 (ranks 0 and 1) gets the first half of the microbatches and
// its coordinate 1 (ranks 2 and 3) the second. Ranks 2 and 3 then share the work on each of these.
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

#include "partition/layouts_asked.h"
#include "partition/timetable.h"
#include "program/axes.h"
#include "program/program.h"

namespace orrery {

struct Axis {
  std::string name;
  int size = 1;
  std::string strategy;  // who made it
};

// An axis that is also used as the product of two: `inner` varies fastest.
struct SplitAxis {
  std::string axis, outer, inner;
  int inner_size = 1;
};

// How many microbatches the ranks of a batch axis get, in proportion to each other; 0: none. `of`
// is empty where all get as many.
struct BatchShares {
  std::string axis, origin;  // origin: the strategy that asked for it
  std::vector<int> of;       // by coordinate
  bool leave_out() const { return std::find(of.begin(), of.end(), 0) != of.end(); }
};

// The order of a rank's microbatches, and of the chunks of the model among them.
struct Schedule {
  bool one_by_one = false;          // microbatches run one after another, not in one call
  std::string microbatch_strategy;  // that asked for it
  std::string axis;                 // the pipeline: each coordinate is a stage; "" if there is none
  std::string pipeline_strategy;    // assigns chunks to stages and orders the actions
  std::vector<int> chunk_at;        // by chunk of the model: the stage that runs it
  // The first call for a number of microbatches asks the strategy, or the script. [main thread]
  std::function<std::shared_ptr<const Timetable>(int microbatches)> timetable;
  // For periodic programs: the stages that hold each parameter and state of the step, by name.
  std::map<std::string, std::vector<int>> holders;
};

// Each rank runs its microbatches as if there were no other ranks, when a strategy's driver says so
// (edit/asked.h).
struct Alone {
  std::string strategy;  // "": ranks take steps together
  std::string remedy;    // for errors: what the user can do instead
  bool on() const { return !strategy.empty(); }
};

struct Mesh {
  int world = 1;
  std::vector<Axis> axes;  // outermost first: the last one varies fastest with the rank
  std::vector<SplitAxis> split_axes;

  // The product of all batch axes, "outer*inner"; "" if there is none. A batch axis is one over
  // which the batch is split, so that its coordinates have microbatches of their own. Axes whose
  // coordinates train apart come first, so that each of these has consecutive samples.
  std::string batch_axis;
  // The outermost axes of `batch_axis` whose coordinates train apart, each on its own part of the
  // batch: sums from which states are updated are completed over the other axes only
  // (partition/independent.h). "": there are none.
  std::string independent_axis;
  BatchShares shares;
  Alone alone;
  // Where ranks are alone: this one has the microbatches [first, second), not its usual ones.
  std::optional<std::pair<int64_t, int64_t>> only;
  // Sums over the batch need not have the bits of one process (`reduce = "fast"` of compile): all
  // that a rank adds up is one leaf of their tree, however many microbatches it has.
  bool fast_sums = false;

  Schedule schedule;
  // A rank's backend or device has one exchange in progress at a time (lower/channel.h).
  bool one_lane = false;

  std::map<ValueId, Reduction> reduced;    // gradients that are summed over an axis
  std::map<std::string, Sharded> sharded;  // by name of the parameter
  std::vector<Placing> placed;  // one for each axis, in the order in which they were asked for
  Offload offload;

  std::string placed_axis() const;  // the product of the axes of `placed`
  // The axes of `placed` that are also batch axes: a value that is cut over them holds the samples
  // of all their ranks.
  std::string gathered_axis() const;
  int batch_ranks() const;  // size of the batch axis, 1 if none
  // The share (BatchShares) of the rank with this coordinate on `batch_axis`; 1 if all get as many.
  int batch_share(int coordinate) const;
  // The sum of all shares: the fewest microbatches of which each rank gets its share.
  int least_microbatches() const;
  // The batch axes over which gradients are summed, and how many ranks they have.
  std::string gradient_axis() const { return without_axis(batch_axis, independent_axis); }
  int gradient_ranks() const { return size_of(gradient_axis()); }
  // What is left of the gradient axes without `axis`, which is one of them or the inner half of
  // one. Ranks that differ only there are replicas: they hold the same shard of what `axis` shards.
  std::string replicas_of(const std::string& axis) const;
  // The strategy that made the outermost axis of a product, "" if there is none.
  std::string maker_of(const std::string& product) const;
  // An axis may be a product (program/axes.h).
  int size_of(const std::string& axis) const;               // 1 if there is none
  int coordinate(const std::string& axis, int rank) const;  // 0 if there is none
  // The rank that differs from `rank` only in its coordinate on `axis`.
  int peer(const std::string& axis, int coordinate, int rank) const;
  // The size and the stride (the difference of rank between neighbours) of each factor of an axis,
  // without those of size 1; adjacent factors are merged into one. Two axes of equal shape have
  // their ranks in the same groups.
  using Shape = std::vector<std::pair<int, int>>;
  Shape shape_of(const std::string& axis, int rank) const;
};

std::vector<MeshAxis> axes_of(const Mesh& mesh);
// The mesh of the periodic programs of a step, which have no batch.
Mesh mesh_of_periodic(Mesh step);

// Assigns microbatches to ranks as evenly as possible: rank r of the batch axis gets [first[r],
// first[r+1]) of the result `first`. Eight on three ranks: {0, 2, 5, 8}. With a mesh that has
// shares, in proportion to these.
std::vector<int64_t> assign_microbatches(int64_t microbatches, int ranks);
std::vector<int64_t> assign_microbatches(int64_t microbatches, const Mesh& mesh);
// Whether this gives every rank of the batch axis as many.
bool assigns_evenly(int64_t microbatches, const Mesh& mesh);

// Where the microbatches of ranks stand in a sum that is completed over `axis`, a product of batch
// axes: of the ranks that differ from `rank` only there, the one at coordinate c has the leaves
// [first[c], first[c+1]) of first.back(), `first` being the result. `first_microbatch` is that of
// assign_microbatches. `gathered` are other batch axes: each coordinate counts as having the
// microbatches of all their ranks. With fast sums, all microbatches of a coordinate count as one.
std::vector<int64_t> microbatches_on(const Mesh& mesh, const std::vector<int64_t>& first_microbatch,
                                     const std::string& axis, int rank,
                                     const std::string& gathered = "");

}  // namespace orrery
