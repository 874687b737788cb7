// SPDX-License-Identifier: Apache-2.0
#include "partition/passes.h"

#include "base/error.h"

namespace orrery {

// Why ranks take steps on batches of their own, and what the user can do; "" if they do not.
static std::string own_batches(const Mesh& mesh) {
  if (const Alone& own = mesh.alone; own.on())
    return fmt::format("strategy.{} has no common step: {}, or ", own.strategy, own.remedy);
  for (const Axis& axis : mesh.axes)
    if (has_axis(mesh.independent_axis, axis.name))
      return fmt::format("strategy.{} has the ranks of axis '{}' train apart: leave it out, or ",
                         axis.strategy, axis.name);
  return "";
}

// Why the whole batch cannot be complete within one call, and what the user can do; "" if it can.
static std::string batch_in_parts(const Mesh& mesh) {
  if (mesh.schedule.one_by_one)
    return fmt::format("strategy.{} runs microbatches one after another: leave it out, or ",
                       mesh.schedule.microbatch_strategy);
  if (mesh.shares.leave_out() && !mesh.alone.on())
    return fmt::format("strategy.{} leaves ranks without samples: leave it out, or ",
                       mesh.shares.origin);
  return own_batches(mesh);
}

void check_loss(const std::string& needs_sums, const Mesh& mesh) {
  const std::string why = needs_sums.empty() ? "" : batch_in_parts(mesh);
  if (!why.empty())
    fail(ORR_INVALID,
         "{}, so that these must be complete before any gradient can be computed, but {}apply the "
         "function to each sample before the mean",
         needs_sums, why);
}

// Sums of the whole batch's fields would be wrong where ranks have batches of their own.
static void check_whole_fields(const Program& p, const Mesh& mesh) {
  const std::string why = own_batches(mesh);
  if (why.empty()) return;
  for (const Op& op : p.ops())
    for (ValueId v : op.in)
      if (p.value(v).role == Role::whole_batch)
        fail(ORR_INVALID,
             "{}the loss has terms that are divided by different weights, of which this is one, "
             "but {}give all terms the same weights",
             op.site.prefix(), why);
}

void check_whole_batch(const Program& p, const Mesh& mesh) {
  check_whole_fields(p, mesh);
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
