// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <dtl/dtl.hpp>
#include <set>

#include "plan/diff.h"
#include "plan/traffic.h"

namespace orrery {
namespace {

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
  size_t i = 0, j = 0;
  for (auto& [key, info] : diff.getSes().getSequence()) {
    if (info.type == dtl::SES_DELETE) {
      found.changes.push_back({'-', before[i++].text}), ++found.removed;
    } else if (info.type == dtl::SES_ADD) {
      found.changes.push_back({'+', after[j++].text}), ++found.added;
    } else {
      found.resized += before[i++].text != after[j].text;
      found.changes.push_back({' ', after[j++].text});
    }
  }
  return found;
}

}  // namespace orrery
