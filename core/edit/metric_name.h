// SPDX-License-Identifier: Apache-2.0
//
// Which names a number of a step may have, so that files and pages of observers can show it.
#pragma once

#include <string>

namespace orrery {

// Throws Error (ORR_INVALID) if a script or a strategy may not call a number of a step so: what
// files call their own (a step's number or time, what the core measures), and what is not text.
// `what` begins the message.
void check_metric_name(const std::string& name, const std::string& what);

}  // namespace orrery
