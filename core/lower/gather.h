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

// The concatenation of all ranks' flat tensors, in rank order: rank i of the axis gives counts[i]
// elements, this rank, at coordinate `me`, those of `own` one after another. Carried out on every
// rank, also where nobody needs the result (int "always").
ValueId add_gather(Program& p, const std::vector<ValueId>& own, int32_t dtype, const Dims& counts,
                   int me, const std::string& axis, const std::string& cause);

// A tensor of `type` of which rank r of the axis has the elements [cuts[r], cuts[r+1]), on all of
// them; `own` is this rank's piece, kNone if it has none.
ValueId gather_pieces(Program& p, ValueId own, const Type& type, const Dims& cuts, int me,
                      const std::string& axis, const std::string& cause);

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
