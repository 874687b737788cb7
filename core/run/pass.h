// SPDX-License-Identifier: Apache-2.0
//
// An evaluation of several batches, whose results are those of one batch with all samples
// (program/over_batches.h). [main thread]
#pragma once

#include <map>
#include <string>
#include <vector>

#include "program/over_batches.h"
#include "run/run.h"

namespace orrery {

class Pass {
 public:
  // Adds the result of the next batch, whose program has `sums`. Throws Error, with `line`, if the
  // programs of two batches do not have the same sums.
  void add(const OverBatches& sums, StepResult& result, const std::string& line);
  int64_t batches() const { return batches_; }
  // Gives the last result the rows of all batches.
  void finish(StepResult& result) const;

 private:
  int64_t batches_ = 0;
  OverBatches sums_;  // of the first batch
  std::map<std::string, std::vector<HostTensor>> rows_;
};

// Throws Error, with the line of the loss function, unless the results of such batches can be put
// together.
void refuse_parts(const RunSpec& spec, const BatchFields& batch);

}  // namespace orrery
