// SPDX-License-Identifier: Apache-2.0
//
// The starts that a job has left, and the waits before them: 1 s, 2 s, 4 s and so on up to a
// minute, so that a host that is away for a while does not use them up.
#pragma once

#include <chrono>

#include "launch/front.h"

namespace orrery {

class Restarts {
 public:
  explicit Restarts(int left) : left_(left) {}
  int left() const { return left_; }
  // How long to wait now. The launcher cannot see the steps of a job: a start that has lasted for
  // ten seconds counts as progress, and the waits begin anew. `lasted`: how long all ranks ran
  // until the first was lost; 0 if not all have begun.
  std::chrono::seconds next_wait(std::chrono::steady_clock::duration lasted);
  // Says that the job starts again and waits. The signal that ended the wait, or 0.
  // REQUIRES: left() > 0.
  int use_one(std::chrono::steady_clock::duration lasted, Front& front);

 private:
  int left_;
  std::chrono::seconds wait_{0};  // the last one
};

}  // namespace orrery
