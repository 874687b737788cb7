// SPDX-License-Identifier: Apache-2.0
#include "plan/planner.h"

#include "base/error.h"
#include "edit/planner.h"
#include "lower/lower.h"
#include "plan/diff.h"
#include "plan/digest.h"
#include "plan/facts.h"
#include "plan/fit.h"
#include "plan/layouts.h"
#include "plan/ops.h"
#include "plan/probe.h"
#include "plan/step.h"

namespace orrery {
namespace {

Json answer(const PlanSource& source, const Json& question) {
  const std::string what = question.at("what");
  if (what == "diff") return diff_json(source, question.at("rank"));
  const auto machine = [&] { return machine_of(question.at("machine")); };
  if (what == "facts") return facts_json(source, machine());
  const int world = question.value("world", source.world);
  const Blueprint b = source.build(source.stack, world, question.value("microbatches", 0));
  if (what == "counts") return counts_json(b);
  if (what == "probe") return probe_json(b, source.kernels, machine());
  if (what == "peak") return peak_json(b, source.kernels);
  if (what == "digest") return digest_json(source, b);
  if (what == "layouts") return layouts_json(source, b, question.at("rank"));
  if (what == "ops")
    return ops_json(lower({&b.program, &b.mesh, b.microbatches, 0, source.kernels}));
  const ShardSizes sizes = what == "sketch" ? ShardSizes::largest : ShardSizes::exact;
  if (what == "layout" || what == "sketch") {
    // The first rank is lowered alone before all others are.
    if (const double room = question.value("room", 0.0); room > 0)
      if (const uint64_t bytes =
              lower({&b.program, &b.mesh, b.microbatches, 0, source.kernels}).bytes();
          static_cast<double>(bytes) > room)
        return {{"peak_bytes", bytes}};
    return layout_json(source, b, machine(), question.at("model_flops"), sizes);
  }
  const Json step = step_json(source, b, machine());
  return what == "json" ? Json(step.dump(1) + "\n") : step;
}

}  // namespace

void use_planner() { planner().answer = answer; }

}  // namespace orrery
