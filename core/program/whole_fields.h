// SPDX-License-Identifier: Apache-2.0
//
// Sums over the batch that are made of batch fields alone, such as how many labels count. Every
// rank can compute them before its first microbatch, from the fields of the whole batch
// (Program::whole_batch_input), without asking other ranks.
#pragma once

#include <map>

#include "program/program.h"

namespace orrery {

class WholeFields {
 public:
  explicit WholeFields(Program& p) : p_(p) {}

  // v, a sum or mean over the batch, as a value that all ranks have at the beginning of a step; v
  // itself, if it does not depend on the batch. kNone: it is made of parameters, of random numbers,
  // or by an op that knows which rank has which samples. The ops are appended in phase forward.
  ValueId of(ValueId v);

 private:
  ValueId given(ValueId v);
  ValueId computed(ValueId v);

  Program& p_;
  std::map<ValueId, ValueId> known_;
};

}  // namespace orrery
