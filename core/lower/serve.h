// SPDX-License-Identifier: Apache-2.0
//
// A training step cut in two for servers that take gradients as they come (Dean et al., "Large
// Scale Distributed Deep Networks", NIPS 2012): what a worker does with its leaves, and what a
// server does with what it is pushed. Both are ordinary programs; the cut goes through the
// gradients, or, where the server adds those of one step in the canonical tree (design section 8),
// through the sums over the batch.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lower/mesh.h"
#include "program/program.h"
#include "program/state.h"

namespace orrery {

// What the optimizer's update of each parameter took and changed, noted while it was traced.
struct Updating {
  std::map<std::string, ValueId> gradients;  // by name of the parameter
  std::map<std::string, std::string> of;     // optimizer state -> its parameter
};

using LeafRange = std::pair<int64_t, int64_t>;  // [first, last)
using StateList = std::vector<std::shared_ptr<State>>;

// The leaves that each worker's pushes are sums of, in the order of the leaves: its tree nodes if
// the server adds them, else one range.
std::vector<LeafRange> pushed_leaves(const Spread& spread, int64_t leaves, int coordinate);

// One server's part: applying what has arrived to its own copies of the parameters.
struct ServerShare {
  Program program;
  std::vector<ValueId> wants;      // of the trained program: the values that workers push to it
  std::vector<StateList> arrived;  // by range of leaves, parallel to wants: where they are put
  StateList params, masters;       // the workers' parameters, and its own; parallel
  StateList optimizer;             // states that only it has
};
// REQUIRES: spread.serving.on(). The states are new but for `params` and `optimizer`; none has
// memory yet.
ServerShare server_share(const Program& trained, const Updating& updating, const Spread& spread,
                         int64_t leaves, int server);

// A worker's step on its leaves: nothing is updated but `into`, which gets the values, or what it
// held and the values (`adds`).
Program worker_program(const Program& trained, const Updating& updating,
                       const std::vector<ValueId>& values, const StateList& into, bool adds);

}  // namespace orrery
