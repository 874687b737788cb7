// SPDX-License-Identifier: Apache-2.0
#include "check/test.h"

namespace orrery::judge {

std::vector<Test> comm_tests() { return {}; }

}  // namespace orrery::judge
namespace orrery::judge { int run_body(const Subject&, const std::string&, const std::string&) { return 1; } }
