// SPDX-License-Identifier: Apache-2.0
//
// Values that vary over the axis itself (program/varying.h): each rank has all of its own, so they
// are never cut over it. Where a rank takes its own part of a value that is cut, slice_at its
// coordinate, and where the ranks' own are gathered into one value, which can lie in parts, no byte
// moves.
#include <algorithm>

#include "lower/cut_pass.h"
#include "program/axes.h"
#include "program/build.h"

namespace orrery {

// Whether v is this rank's coordinate on the axis.
bool CutPass::is_coordinate(ValueId v) const {
  const OpId maker = from_.value(v).producer;
  if (maker == kNone) return false;
  const Op& op = from_.ops()[static_cast<size_t>(maker)];
  return op.kind == "coordinate" && attr_text(op.attrs, "axis", "") == me_.axis;
}

bool CutPass::take_own(const Op& op) {
  if (op.kind != "slice_at" || !is_coordinate(op.in[1])) return false;
  const int dim = static_cast<int>(attr_int(op.attrs, "dim", 0));
  const int64_t extent = from_.type(op.in[0]).dims[static_cast<size_t>(dim)];
  if (attr_int(op.attrs, "size", 1) != 1 || extent != me_.ranks) return false;
  become(op.out[0], read(op.in[0], Cut::of(dim, {extent})), Cut{});
  return true;
}

bool CutPass::gather_own(const Op& op) {
  if (op.kind != "all_gather" || attr_text(op.attrs, "axis", "") != me_.axis) return false;
  if (op.attrs.count("counts") || parts_ != me_.ranks) return false;
  const ValueId x = read(op.in[0], Cut{});
  Dims dims = to_.type(x).dims;
  dims.insert(dims.begin(), 1);
  become(op.out[0], build::reshape(to_, x, dims), Cut::of(0, {me_.ranks}));
  return true;
}

bool CutPass::varying(const Op& op) {
  if (gather_own(op)) return true;
  const bool varies = std::any_of(op.out.begin(), op.out.end(), [&](ValueId v) {
    return has_axis(from_.value(v).varying, me_.axis);
  });
  if (!varies) return false;
  if (!take_own(op)) emit(op, whole(op));
  return true;
}

}  // namespace orrery
