// SPDX-License-Identifier: Apache-2.0
//
// Pieces into wholes: the gathering of concatenated tensors, and of parameters that live in pieces
// before the layers that use them (Zhao et al., "PyTorch FSDP", VLDB 2023).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lower/units.h"
#include "program/program.h"

namespace orrery {

// A tensor that lies in pieces: the elements [cuts[r], cuts[r + 1]) at coordinate r of an axis.
struct Pieces {
  std::vector<ValueId> own;  // this rank's, one after another, in any shapes; kNone is none
  Dims cuts;
};

// The ranks that have the pieces.
struct Among {
  std::string axis, cause;
  int me = 0;  // this rank's coordinate
};
inline Among among(const Sharded& how, const Spread& spread, int rank) {
  return {how.axis, how.cause, spread.coordinate(how.axis, rank)};
}

// All of each tensor, flat, on all of these ranks, by one message in which every rank's pieces
// follow one another. Carried out on every rank, also where nobody needs the result (int "always").
// `home`: the name of the first of the states that the wholes are to lie in (lower/homes.h).
std::vector<ValueId> gather_together(Program& p, const std::vector<Pieces>& tensors, int32_t dtype,
                                     const Among& among, const std::string& home = "");

// Makes a state's value hold its elements [begin, end) alone.
void cut_value(Value& state, int64_t begin, int64_t end);

class ParamGather {
 public:
  // Writes into `to`, a copy of `from` without ops. Borrows all arguments.
  ParamGather(const Program& from, Program& to, const std::vector<Unit>& units,
              const Spread& spread, int rank);

  // Parameters in pieces -> the state values that hold this rank's.
  const std::map<ValueId, ValueId>& held() const { return held_; }
  // Forward and backward, with each such unit gathered as many units ahead of its use as it says,
  // in each unless it is kept.
  void emit_early();

 private:
  struct Use {
    size_t unit;
    OpId first;  // the op that uses it first
    OpId at;     // the op before which it is gathered
  };
  std::vector<Use> find_uses(Phase phase) const;
  void hold(const Unit& unit);
  void gather(const Unit& unit, Phase phase);

  const Program& from_;
  Program& to_;
  const std::vector<Unit>& units_;
  const Spread& spread_;
  int rank_;
  std::map<ValueId, ValueId> held_;
  std::map<ValueId, ValueId> again_;  // parameter -> its whole for backward
};

}  // namespace orrery
