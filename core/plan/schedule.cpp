// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule.h"

#include <algorithm>

#include "partition/timetable.h"

namespace orrery {
namespace {

const char* letter(Segment s) {
  return s == Segment::forward ? "F" : s == Segment::weight ? "W" : "B";
}

}  // namespace

Json schedule_json(const Blueprint& b) {
  const std::vector<int64_t> first = assign_microbatches(b.microbatches, b.mesh);
  int64_t most = 0;
  for (size_t r = 0; r + 1 < first.size(); ++r) most = std::max(most, first[r + 1] - first[r]);
  const auto timetable = b.mesh.schedule.timetable(static_cast<int>(most));
  Json stages = Json::array();
  for (const std::vector<Action>& actions : timetable->actions) {
    Json stage = Json::array();
    for (const Action& a : actions) {
      const Span span = timetable->times.at(a);
      stage.push_back(
          Json::array({letter(a.segment), a.microbatch, a.chunk, span.begin, span.end}));
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

}  // namespace orrery
