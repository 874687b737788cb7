// SPDX-License-Identifier: Apache-2.0
//
// The order of a step in a pipeline as a picture: a row per rank, time to the right, F, B and W
// actions with the number of their microbatch, and what is idle.
#pragma once

#include <string>
#include <vector>

#include "partition/timetable.h"

namespace orrery {

// For a terminal. Actions beyond its width are left out, and it says so.
std::string schedule_text(const Timetable& timetable);
// The same, whole, as an SVG document.
std::string schedule_svg(const Timetable& timetable);

}  // namespace orrery
