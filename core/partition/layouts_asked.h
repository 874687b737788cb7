// SPDX-License-Identifier: Apache-2.0
//
// How values are to lie over the ranks: what strategies ask of a gradient, of the training state of
// a parameter, and of single values. The passes of this room make it so (localize.h, passes.h,
// cut_program.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "program/program.h"

namespace orrery {

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

// Parameters and states that are kept in another memory tier between uses (Value::tier).
struct Offload {
  bool used = false;
  // Of the files of Tier::disk; "": the run's directory, or the system's for temporary files.
  std::string directory;
};

}  // namespace orrery
