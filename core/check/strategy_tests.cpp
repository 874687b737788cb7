// SPDX-License-Identifier: Apache-2.0
#include "check/test.h"

namespace orrery::judge {

std::vector<Test> strategy_tests() { return {}; }

}  // namespace orrery::judge
