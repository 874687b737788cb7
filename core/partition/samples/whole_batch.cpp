// SPDX-License-Identifier: Apache-2.0
#include "partition/passes.h"

#include "base/error.h"

namespace orrery {

// Why the whole batch cannot be complete within one call, and what the user can do; "" if it can.
static std::string batch_in_parts(const Mesh& mesh) {
  if (mesh.one_by_one)
    return fmt::format("strategy.{} runs microbatches one after another: leave it out, or ",
                       mesh.slicer);
  if (const Driving& d = mesh.driving; d.on())
    return fmt::format("strategy.{} has no common step: {}, or ", d.origin, d.remedy());
  if (mesh.dedicated > 0)
    return fmt::format("strategy.{} leaves ranks without samples: leave it out, or ",
                       mesh.dedicated_by);
  for (const Axis& axis : mesh.axes)
    if (has_axis(mesh.apart, axis.name))
      return fmt::format("strategy.{} has the ranks of axis '{}' train apart: leave it out, or ",
                         axis.strategy, axis.name);
  return "";
}

void check_whole_batch(const Program& p, const Mesh& mesh) {
  const std::string why = batch_in_parts(mesh);
  if (why.empty()) return;
  for (const Op& op : p.ops())
    if (op.kind == "batch_sum" || op.kind == "batch_gather")
      fail(ORR_INVALID,
           "{}samples read what is made of the whole batch here{}, but {}keep it in a buffer with "
           ":update, which the next step's samples may read",
           op.site.prefix(),
           op.kind == "batch_sum" ? " (a sum or mean over it)" : " (its gathered rows)", why);
}

}  // namespace orrery
