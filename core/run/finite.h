// SPDX-License-Identifier: Apache-2.0
//
// Checks that the parameters are finite after a step, by one pass over them on their device.
// [main thread]
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "run/variant.h"

namespace orrery {

class FiniteCheck {
 public:
  // Looks at this rank's part of every parameter that the step changes and that lies on the device.
  // Parameters in other tiers are checked by the loss of the next step, and when they are saved.
  FiniteCheck(const Variant& step, int rank, Runtime& runtime);

  // "" or a complaint such as "'fc.weight' holds nan at [3,2]". Does not communicate.
  std::string complaint();

 private:
  std::vector<std::shared_ptr<State>> params_;
  std::unique_ptr<Variant> sums_;
};

}  // namespace orrery
