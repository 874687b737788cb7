// SPDX-License-Identifier: Apache-2.0
//
// L2: what one rank will do in a step, as data. Launches and collectives refer to storages; storages
// have offsets in regions; the schedule says in which order each lane works. The executor runs this
// very object, `orrery plan` prints it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lower/localize.h"
#include "lower/mesh.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {

// Memory regions of a rank. `state` storages live in their State, for longer than the plan.
enum class Region { arena, comm, state };

struct Storage {
  Region region = Region::arena;
  uint64_t bytes = 0, offset = 0;
  int first = -1, last = -1;  // steps of the schedule between which it is alive
  std::string category;       // "input", "activation", "gradient", "workspace", "metric"
  std::shared_ptr<State> state;
};

// A tensor inside a storage.
struct Place {
  int storage = kNone;
  uint64_t offset = 0;  // bytes
  Layout layout;
};

struct Launch {
  Op op;                              // kind, attributes, expression, site
  std::vector<orr_tensor> in, out;    // as the kernel sees them
  std::vector<Place> in_at, out_at;
  int workspace = kNone;              // storage
  int kernels = 0;                    // index of the kernel plugin in the plan's list
  std::string numerics;
  Cost cost;
};

// One bucket: totals that travel together.
struct Bucket {
  std::string name, cause, where;
  int32_t dtype = ORR_F32;
  int64_t count = 0;            // elements of one tree node
  int64_t nodes = 1;            // of this rank
  std::vector<int64_t> leaf_first;
  int storage = kNone;
  int ready = -1;               // schedule step after which it can be sent
  uint64_t bytes_sent = 0;      // by this rank, per step
  std::vector<ValueId> totals;  // members, in order
};

// The schedule: segments of the step in order (design section 5), each a run of launches; `post`
// hands a bucket to the communication lane, `wait` blocks the compute lane until it is back.
enum class Segment { forward, backward, update };
struct Step {
  enum Kind { launch, post, wait } kind;
  int index;
  Segment segment;
};

struct RankPlan {
  LocalProgram local;
  std::vector<Storage> storages;
  std::vector<Launch> launches;
  std::vector<Bucket> buckets;
  std::vector<Step> schedule;
  std::vector<Place> places;  // by ValueId of the local program; storage kNone if never stored
  uint64_t arena_bytes = 0, comm_bytes = 0, state_bytes = 0;
  std::vector<std::string> kernel_names;
  uint64_t bytes_sent() const;
  double flops() const;
};

}  // namespace orrery
