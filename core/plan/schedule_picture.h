// SPDX-License-Identifier: Apache-2.0
//
// Draws the schedule of a pipeline: a row per rank, time to the right, the F, B and W actions with
// the number of their microbatch, and idle times.
#pragma once

#include <string>
#include <vector>

#include "partition/timetable.h"

namespace orrery {

// The picture for a terminal. If it is wider than a terminal, the rest is left out, and a line says
// so.
std::string schedule_text(const Timetable& timetable);
// The whole picture as an SVG document.
std::string schedule_svg(const Timetable& timetable);

}  // namespace orrery
