// SPDX-License-Identifier: Apache-2.0
//
// Gathers tensors that lie in pieces, several of them by one message.
#pragma once

#include <string>
#include <vector>

#include "partition/mesh.h"
#include "program/program.h"

namespace orrery {

// A tensor that lies in pieces: the elements [cuts[r], cuts[r + 1]) at coordinate r of an axis.
struct Pieces {
  std::vector<ValueId> own;  // this rank's, one after another, in any shapes; kNone is none
  Dims cuts;
};

// The ranks that have the pieces.
struct Among {
  std::string axis, origin;
  int me = 0;  // this rank's coordinate
};
inline Among among(const Sharded& how, const Mesh& mesh, int rank) {
  return {how.axis, how.origin, mesh.coordinate(how.axis, rank)};
}

// Returns each whole tensor, flat, on all of these ranks. One message carries a rank's pieces of
// all tensors, one after another. It is carried out on every rank, also where the result is not
// needed.
std::vector<ValueId> gather_together(Program& p, const std::vector<Pieces>& tensors, int32_t dtype,
                                     const Among& among, const CommOp& how = {.awaited = true});

}  // namespace orrery
