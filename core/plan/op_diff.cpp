// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <dtl/dtl.hpp>
#include <set>

#include "plan/diff.h"
#include "plan/traffic.h"

namespace orrery {
namespace {

constexpr size_t kContext = 2;  // equal lines around a change
constexpr size_t kRun = 8;      // lines of a run that are shown

const char* segment_name(Segment s) {
  static constexpr const char* kNames[] = {"prologue", "forward", "backward", "weight", "update"};
  return kNames[static_cast<int>(s)];
}

std::string types(const std::vector<orr_tensor>& tensors) {
  std::string text;
  for (const orr_tensor& t : tensors)
    text += fmt::format(" {}{}", dtype_name(t.dtype), to_string(Dims(t.dims, t.dims + t.rank)));
  return text;
}

std::string dtypes(const std::vector<orr_tensor>& tensors) {
  std::string text;
  for (const orr_tensor& t : tensors) text += fmt::format(" {}", dtype_name(t.dtype));
  return text;
}

OpLine line_of(const Launch& l, Segment segment) {
  const std::string head = fmt::format("{:<9}{}", segment_name(segment), l.op.kind);
  const std::string expr = !l.op.expr.instrs.empty() ? " {" + to_string(l.op.expr) + "}" : "";
  const std::string where = l.op.site.region.empty() ? "" : "  # " + l.op.site.region;
  return {head + dtypes(l.in) + expr + where, head + types(l.in) + " ->" + types(l.out) + where};
}

OpLine line_of(const Exchange& e, Segment segment) {
  const std::string head = fmt::format("{:<9}{} {} on {}", segment_name(segment),
                                       collective_name(e.op), dtype_name(e.dtype), e.axis);
  return {head + " " + e.name, fmt::format("{}: {}, {} elements, sends {} bytes  by {}", head,
                                           e.name, e.count, e.bytes_sent, e.origin)};
}

// A line of the edit script.
struct Change {
  char sign;  // ' ', '-', '+'
  const OpLine* line;
};

class Hunks {
 public:
  explicit Hunks(const std::vector<Change>& changes) : changes_(changes) {}

  std::string text() {
    size_t shown = 0;
    for (size_t i = 0; i < changes_.size(); i = end_of_run(i)) {
      if (changes_[i].sign == ' ') continue;
      const size_t from = std::max(shown, i - std::min(i, kContext));
      if (from > shown || i == 0 || !shown) text_ += fmt::format("@@ op {} @@\n", from + 1);
      for (size_t k = from; k < i; ++k) put(k);
      run(i, end_of_run(i));
      shown = end_of_run(i);
      for (size_t k = 0; k < kContext && shown < changes_.size() && changes_[shown].sign == ' ';
           ++k)
        put(shown++);
    }
    return text_;
  }

 private:
  size_t end_of_run(size_t i) const {
    size_t end = i + 1;
    while (end < changes_.size() && changes_[end].sign == changes_[i].sign) ++end;
    return end;
  }

  void put(size_t i) { text_ += fmt::format("{}{}\n", changes_[i].sign, changes_[i].line->text); }

  void run(size_t begin, size_t end) {
    const bool whole = end - begin <= kRun;
    for (size_t i = begin; i < (whole ? end : begin + kRun - 1); ++i) put(i);
    if (whole) return;
    text_ += fmt::format("{}... {} more\n", changes_[begin].sign, end - begin - kRun);
    put(end - 1);
  }

  const std::vector<Change>& changes_;
  std::string text_;
};

std::vector<std::string> keys(const std::vector<OpLine>& lines) {
  std::vector<std::string> found;
  for (const OpLine& line : lines) found.push_back(line.key);
  return found;
}

}  // namespace

std::vector<OpLine> op_lines(const RankPlan& plan) {
  std::vector<OpLine> lines;
  std::set<std::pair<Step::Kind, int>> met;
  for (const Step& s : plan.schedule) {
    if (s.kind == Step::wait || !met.insert({s.kind, s.index}).second) continue;
    const size_t i = static_cast<size_t>(s.index);
    lines.push_back(s.kind == Step::launch ? line_of(plan.launches[i], s.segment)
                                           : line_of(plan.exchanges[i], s.segment));
  }
  return lines;
}

OpDiff diff_ops(const std::vector<OpLine>& before, const std::vector<OpLine>& after) {
  const std::vector<std::string> a = keys(before), b = keys(after);
  dtl::Diff<std::string, std::vector<std::string>> diff(a, b);
  diff.onHuge();
  diff.compose();
  OpDiff found;
  std::vector<Change> changes;
  size_t i = 0, j = 0;
  for (auto& [key, info] : diff.getSes().getSequence()) {
    if (info.type == dtl::SES_DELETE) {
      changes.push_back({'-', &before[i++]}), ++found.removed;
    } else if (info.type == dtl::SES_ADD) {
      changes.push_back({'+', &after[j++]}), ++found.added;
    } else {
      found.resized += before[i++].text != after[j].text;
      changes.push_back({' ', &after[j++]});
    }
  }
  found.text = Hunks(changes).text();
  return found;
}

}  // namespace orrery
