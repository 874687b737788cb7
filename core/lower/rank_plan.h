// SPDX-License-Identifier: Apache-2.0
//
// The plan of one rank (L2): what it will do in a step, as data. Launches and exchanges refer to
// storages; storages have offsets in regions; the schedule says in which order each lane works. The
// executor runs this object, and `orrery plan` prints it.
//
// Microbatches. A rank's microbatches run in one call, or, where a strategy orders them in time, in
// one call each. Launches and storages are then templates: a step of the schedule names its
// microbatch, and a storage that several microbatches need at the same time has several slots.
#pragma once

#include <orrery/comm.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "partition/localize.h"
#include "partition/mesh.h"
#include "partition/timetable.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {

// Memory regions of a rank. `comm` is memory that exchanges use. `state` storages are the memory of
// a State, which outlives the plan. Activations wait for backward in `host` and `disk`.
enum class Region { arena, comm, state, host, disk };

// Which slot of a storage a step uses. one: there is only one. ring: the microbatch modulo the
// number of slots. stack: the step's depth in the stack of tree nodes that wait for their right
// neighbours (partition/timetable.h).
enum class Slots { one, ring, stack };

struct Storage {
  Region region = Region::arena;
  uint64_t bytes = 0, offset = 0;  // of one slot; slots follow one another
  Slots by = Slots::one;
  int64_t slots = 1;
  std::vector<std::pair<int, int>> alive;  // spans of steps [first, last], disjoint and in order
  bool reused = false;                     // comm memory that other buckets use before and after
  bool padded = false;                     // its rows have padding (lower/kernels/padded_rows.h)
  std::string category;  // "input", "activation", "gradient", "workspace", "metric", "window"
  std::shared_ptr<State> state;
  Tier tier = Tier::device;  // where a state is kept, or an activation waits for backward

  bool is_away() const { return region == Region::state && tier != Tier::device; }

  uint64_t whole() const { return bytes * static_cast<uint64_t>(slots); }
  bool alive_at(int step) const;
  bool meets(const Storage& other) const;  // alive at the same time
};

// A tensor inside a storage.
struct Place {
  int storage = kNone;
  uint64_t offset = 0;  // bytes from the step's slot; may wrap around, into the slot before
  Strided layout;
};

// In which of a rank's microbatches a launch runs, where these have a call each.
enum class When : int8_t { always, first, later, last };

struct Launch {
  Op op;                            // kind, attributes, expression, site
  std::vector<orr_tensor> in, out;  // shapes and strides for the kernel
  std::vector<Place> in_at, out_at;
  When when = When::always;
  int workspace = kNone;    // storage
  int kernels = 0;          // index of the kernel plugin in the plan's list
  bool capturable = false;  // the device may record it (kernel.h)
  std::string numerics;
  Cost cost;
};

// A step of the schedule. `launch` runs a launch; `post` hands an exchange to the communication
// lane; `wait` blocks the compute lane until that exchange is done.
struct Step {
  enum Kind : int8_t { launch, post, wait } kind;
  Segment segment;
  int index;
  int chunk = 0, microbatch = 0, depth = 0;
};

// One operation of the communicator, or a copy between memory tiers. An exchange that sums over the
// batch is a bucket: it adds several totals at once, which have `count` elements together. A rank
// with `nodes` nodes of the tree gives so many times `count` elements.
struct Exchange {
  std::string name, origin, where;
  std::string axis;  // mesh axis whose ranks take part
  int32_t op = 0, dtype = ORR_F32, redop = ORR_RED_SUM, root_or_peer = 0, tag = 0;
  int64_t count = 0;
  Dims counts, begins, leaf_first;
  // Of a permutation: the coordinate that each coordinate's tensor goes to; `counts` is then what
  // this rank sends to each coordinate.
  Dims to;
  Place send, recv;         // storage kNone: this rank sends, or receives, nothing
  uint64_t bytes_sent = 0;  // by this rank, each time
  int64_t nodes = 1;
  std::vector<ValueId> totals;  // members of the bucket, in order
  // Where microbatches run in a call each. `merge`: the launch that adds a tree node to the one
  // below it on the stack; kNone with fast sums, which each microbatch adds to one place.
  // `segment`, `chunk`: the action that makes the nodes, or that sends a message.
  int merge = kNone;
  Segment segment = Segment::backward;
  int chunk = 0;
  Tier tier = Tier::device;  // not device: a copy, from or to this tier, on the copy lane
  bool to_tier = false;      // the direction of a copy

  bool is_copy() const { return tier != Tier::device; }
  uint64_t bytes() const { return static_cast<uint64_t>(count * orr_dtype_bytes(dtype)); }
  bool is_bucket() const { return !totals.empty(); }
  // Bytes that the rank with this coordinate sends, each time.
  uint64_t sent_by(int coordinate, int ranks) const;
  // The operation as the backend gets it, without the buffers. REQUIRES: this object outlives it.
  orr_coll descriptor() const;
};

struct RankPlan {
  LocalProgram local;
  Mesh mesh;  // the mesh that the plan is for
  int rank = 0;
  std::vector<Storage> storages;
  std::vector<Launch> launches;
  std::vector<Exchange> exchanges;
  std::vector<Segment> segments;  // by op of the local program
  std::vector<Step> order;        // every launch and post once, in program order: the template
  std::vector<Step> schedule;     // what runs
  std::vector<Action> actions;    // in order; empty if all microbatches run in one call
  // The actions of all coordinates of the pipeline, or of the only one.
  std::shared_ptr<const Timetable> timetable;
  std::vector<Place> places;  // by ValueId of the local program; storage kNone if never stored
  uint64_t arena_bytes = 0, comm_bytes = 0, state_bytes = 0;
  uint64_t host_bytes = 0, disk_bytes = 0;  // states in the other tiers
  uint64_t host_stash = 0, disk_stash = 0;  // regions host and disk
  std::vector<std::string> kernel_names;
  uint64_t alignment = 64;     // of offsets, in bytes
  uint64_t row_alignment = 0;  // of rows for fast products, in bytes; 0: any
  uint64_t outside = 0;        // bytes that the device's driver and libraries take beside the plan

  int add(Storage s) {
    storages.push_back(std::move(s));
    return static_cast<int>(storages.size()) - 1;
  }
  Storage& storage(int i) { return storages[static_cast<size_t>(i)]; }
  const Storage& storage(int i) const { return storages[static_cast<size_t>(i)]; }
  uint64_t bytes() const { return state_bytes + arena_bytes + comm_bytes; }
  uint64_t bytes_sent() const;    // per step
  uint64_t bytes_copied() const;  // between tiers, both ways, per step
  double flops() const;           // per step
  int buckets() const;
};

}  // namespace orrery
