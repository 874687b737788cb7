// SPDX-License-Identifier: Apache-2.0
//
// Which names a number of a step may have, so that files and pages of observers can show it.
#pragma once

#include <string>
#include <string_view>

namespace orrery {

// Throws Error (ORR_INVALID) if a script or a strategy may not call a number of a step so: what
// files call their own (a step's number or time, what the core measures), and what is not text.
// `what` begins the message.
void check_metric_name(const std::string& name, const std::string& what);
// With an escape for each byte that a message cannot show.
std::string printable(std::string_view text);

}  // namespace orrery
