// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule_picture.h"

#include <algorithm>

#include "base/error.h"

namespace orrery {
namespace {

constexpr int kColumns = 150;  // the most that a row has

struct Picture {
  const std::map<Action, Span>& spans;
  double end = 0, busy = 0;
  size_t ranks = 0;

  explicit Picture(const Timetable& timetable)
      : spans(timetable.times), ranks(timetable.actions.size()) {
    for (auto& [action, span] : spans) end = std::max(end, span.end), busy += span.end - span.begin;
  }

  std::string caption() const {
    double all = end * static_cast<double>(ranks), idle = all - busy;
    return fmt::format(
        "bubble {:.1f} % of the step, {:.1f} % over the work (forward 1, backward {}, messages 0)",
        100 * idle / all, 100 * idle / busy,
        std::any_of(spans.begin(), spans.end(),
                    [](auto& s) { return s.first.segment == Segment::weight; })
            ? "1, weight 1"
            : "2");
  }
};

char letter(Segment s) { return s == Segment::forward ? 'F' : s == Segment::weight ? 'W' : 'B'; }

const char* color(Segment s) {
  return s == Segment::forward ? "#7aa6da" : s == Segment::weight ? "#b5bd68" : "#e78c45";
}

}  // namespace

std::string schedule_text(const Timetable& timetable) {
  const ActionTables& tables = timetable.actions;
  Picture picture(timetable);
  int units = static_cast<int>(picture.end), width = 1;
  for (auto& [action, span] : picture.spans)
    width = std::max(width, 1 + static_cast<int>(std::to_string(action.microbatch).size()));
  if (units * (width + 1) > kColumns) width = 0;  // letters without numbers
  int column = width + 1, shown = std::min(units, kColumns / column);
  std::string text;
  for (size_t r = 0; r < tables.size(); ++r) {
    std::string row(static_cast<size_t>(units * column), ' ');
    for (int t = 0; t < units; ++t) row[static_cast<size_t>(t * column)] = '.';
    for (const Action& action : tables[r]) {
      Span span = picture.spans.at(action);
      for (int t = static_cast<int>(span.begin); t < static_cast<int>(span.end); ++t) {
        std::string label(1, letter(action.segment));
        if (width) label += std::to_string(action.microbatch);
        std::copy(label.begin(), label.end(), row.begin() + t * column);
      }
    }
    row.resize(static_cast<size_t>(shown * column));
    text += fmt::format("  stage {:<3} {}\n", r, row.substr(0, row.find_last_not_of(' ') + 1));
  }
  if (shown < units) text += fmt::format("  ... {} of {} time units shown\n", shown, units);
  return text + "  " + picture.caption() + "\n";
}

std::string schedule_svg(const Timetable& timetable) {
  constexpr int kUnit = 26, kRow = 26, kLeft = 64, kTop = 8;
  const ActionTables& tables = timetable.actions;
  Picture picture(timetable);
  int width = kLeft + static_cast<int>(picture.end) * kUnit + 8,
      height = kTop + static_cast<int>(tables.size()) * kRow + 30;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  for (size_t r = 0; r < tables.size(); ++r) {
    int y = kTop + static_cast<int>(r) * kRow;
    svg += fmt::format("<text x=\"6\" y=\"{}\">stage {}</text>\n", y + 17, r);
    for (const Action& action : tables[r]) {
      Span span = picture.spans.at(action);
      double x = kLeft + span.begin * kUnit, w = (span.end - span.begin) * kUnit;
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" "
          "stroke=\"white\"><title>{}</title></rect>"
          "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
          x, y, w, kRow - 2, color(action.segment), to_string(action), x + w / 2, y + 16,
          action.microbatch);
    }
  }
  svg += fmt::format("<text x=\"6\" y=\"{}\">{}</text>\n</svg>\n", height - 8, picture.caption());
  return svg;
}

}  // namespace orrery
