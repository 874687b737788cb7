// SPDX-License-Identifier: Apache-2.0
//
// Whether what a step has left behind is finite: one pass over the parameters, on their device.
// [main thread]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "run/variant.h"

namespace orrery {

class FiniteCheck {
 public:
  // Looks at this rank's part of every parameter that the step changes and that lies on the device;
  // what waits elsewhere is seen by the loss of the next step, and by a save.
  FiniteCheck(const Variant& step, int rank, Runtime& runtime);

  // "" or "'fc.weight' holds nan at [3,2]". It never communicates.
  std::string complaint();

 private:
  std::vector<std::shared_ptr<State>> params_;
  std::unique_ptr<Variant> sums_;
};

}  // namespace orrery
