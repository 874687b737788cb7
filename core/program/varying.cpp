// SPDX-License-Identifier: Apache-2.0
#include "program/varying.h"

#include <algorithm>

#include "base/error.h"
#include "program/axes.h"
#include "program/op.h"

namespace orrery {
namespace {

bool leads_back(const std::string& kind) {
  return kind == "all_reduce" || kind == "all_gather" || kind == "broadcast";
}

// The site of the op, or of the given value, with which v begins to vary on an axis.
Site begins_at(const Program& p, ValueId v, const std::string& axis) {
  for (;;) {
    const Value& value = p.value(v);
    if (value.producer == kNone) return value.site;
    const Op& op = p.ops()[static_cast<size_t>(value.producer)];
    const auto varies = std::find_if(op.in.begin(), op.in.end(), [&](ValueId x) {
      return has_axis(p.value(x).varying(), axis);
    });
    if (varies == op.in.end()) return op.site;
    v = *varies;
  }
}

}  // namespace

void relate_to_axes(Program& p, const Op& op) {
  std::string axes;
  for (ValueId v : op.in)
    if (!p.value(v).varying().empty()) axes = with_axis(axes, p.value(v).varying());
  if (names_axis(op.kind) && !attr_int(op.attrs, "unmarked", 0)) {
    const std::string axis = attr_text(op.attrs, "axis", "");
    axes = leads_back(op.kind) ? without_axis(axes, axis) : with_axis(axes, axis);
  }
  if (const std::string more = attr_text(op.attrs, "varies", ""); !more.empty())
    axes = with_axis(axes, more);
  if (!axes.empty())
    for (ValueId v : op.out) p.mutable_value(v).set_varying(axes);
}

void check_varies_within(const Program& p, ValueId v, const std::string& axes,
                         const std::string& use) {
  const std::string more = without_axis(p.value(v).varying(), axes);
  if (more.empty()) return;
  const std::string axis = factors_of(more).front();
  const Site site = begins_at(p, v, axis);
  p.fail_here(fmt::format(
      "each rank of axis '{}' has a value of its own here, and {} is one for all of them; it "
      "begins to differ at {}: make one of them, such as with :all_reduce(\"{}\", \"mean\")",
      axis, use, site.line.empty() ? "the start" : site.line, axis));
}

}  // namespace orrery
