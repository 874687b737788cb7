// SPDX-License-Identifier: Apache-2.0
//
// Cases with the shapes of a script: every op of its plan, filled and judged as the cases of the
// table are that have the same op.
#pragma once

#include "conformance/kernel/harness.h"

namespace kernel_suite {

struct ScriptCase {
  Case c;
  std::string where;  // module path and Lua line
  double flops = 0;
};

// From what `orrery plan --ops` writes (plan/ops.h). Throws Error for an op that the table has
// no case of.
std::vector<ScriptCase> script_cases(const std::string& json);

}  // namespace kernel_suite
