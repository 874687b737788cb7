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
  bool rows = false;         // cuts lie between rows (orr_shard)
};

// A strategy asks that a value be cut along `dim`; `by` is its Lua line.
struct PartsAsked {
  int dim = 0;
  std::string by = {};
};

// What strategies ask of an axis whose ranks share the work on every sample.
struct Placing {
  std::string axis, origin;
  std::map<std::string, PartsAsked> cuts;  // of parameters, by name
  std::map<ValueId, PartsAsked> values;    // of batch fields and computed values
  // The segments (Placement::segments) of a parameter's cut dim. The step's program shows them, by
  // a split of a fused weight, say. Other programs over the same parameters may not, and read them
  // here.
  std::map<std::string, Dims> segments = {};
  int scatter = kNone;  // sums of activations may be reduce-scattered along this dim
  // How a sum over a cut dim is added: in a binary tree over so many chunks of the dim, or, with 0,
  // one summand of each rank in the order of ranks.
  int chunks = 0;
};

// Parameters and states that are kept in another memory tier between uses (Value::tier).
struct Offload {
  bool used = false;
  // Of the files of Tier::disk; "": the run's directory, or the system's for temporary files.
  std::string directory;
};

}  // namespace orrery
