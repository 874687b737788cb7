// SPDX-License-Identifier: Apache-2.0
//
// How a step is distributed: the mesh axes that strategies made, how the batch's microbatches are
// dealt to ranks and in which order they run, and how values are to lie. The strategies' editing
// calls fill it (edit/edit.h).
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

// How many microbatches the ranks of an axis that deals the batch get, in proportion to each other;
// 0: none. `of` is empty where all get as many.
struct Shares {
  std::string axis, origin;  // origin: the strategy that asked for it
  std::vector<int> of;       // by coordinate
  bool leave_out() const { return std::find(of.begin(), of.end(), 0) != of.end(); }
};

// The order of a rank's microbatches, and of the chunks of the model among them.
struct Schedule {
  bool one_by_one = false;    // microbatches run one after another, not in one call
  std::string slicer;         // the strategy that asked for it
  std::string axis;           // the axis that deals the stages of a pipeline, "" if none
  std::string strategy;       // deals the stages and orders the actions
  std::vector<int> chunk_at;  // by chunk of the model: the coordinate that holds it
  // The first call for a number of microbatches asks the strategy, or the script. [main thread]
  std::function<std::shared_ptr<const Timetable>(int microbatches)> timetable;
  // For periodic programs: the coordinates that hold each parameter and state of the step.
  std::map<std::string, std::vector<int>> held_at;
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

  // The product of the axes that deal the batch: "outer*inner"; "" if there is none. Axes whose
  // coordinates train apart come first, so that each of these has consecutive samples.
  std::string batch_axis;
  // The outermost axes of `batch_axis` whose coordinates train apart, each on its own part of the
  // batch: sums from which states are updated are completed over the other axes only
  // (partition/apart.h). "": there are none.
  std::string apart;
  Shares shares;
  Alone alone;
  // Where ranks are alone: this one has the microbatches [first, second), not those dealt to it.
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
