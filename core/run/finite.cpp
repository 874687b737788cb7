// SPDX-License-Identifier: Apache-2.0
//
// A sum with a term that is not finite is not finite itself, so one sum for each parameter tells
// whether to look closer. A sum of finite terms may overflow: then the elements are looked at.
#include "run/finite.h"

#include <cmath>

#include "base/error.h"
#include "program/build.h"
#include "run/replicas.h"
#include "run/states.h"

namespace orrery {

FiniteCheck::FiniteCheck(const Variant& step, int rank, Runtime& runtime) {
  const RankPlan& plan = step.plan();
  const Program& trained = plan.local.program;
  Blueprint b;
  b.mesh.world = plan.mesh.world, b.mesh.axes = plan.mesh.axes;
  Program& p = b.program;
  p.set_phase(Phase::update);
  for (auto& [state, next] : trained.updates()) {
    const Value& v = trained.value(state);
    const State& s = *v.state;
    if (v.role != Role::param || !is_real(s.type.dtype) || s.tier != Tier::device ||
        s.part.type(s.type).elements() == 0)
      continue;
    p.set_site(s.site);
    ValueId mine = p.state_value(v.state);
    p.mutable_value(mine).part = v.part, p.mutable_value(mine).type = v.type;
    if (orr_dtype_bytes(s.type.dtype) == 2) mine = p.cast(mine, ORR_F32);
    p.output(std::to_string(params_.size()), build::reduce(p, "sum", mine, {}, false));
    params_.push_back(v.state);
  }
  if (!params_.empty()) sums_ = std::make_unique<Variant>(b, rank, runtime);
}

std::string FiniteCheck::complaint() {
  if (!sums_) return "";
  sums_->run();
  for (auto& [name, sum] : sums_->fetch_scalars()) {
    if (std::isfinite(sum)) continue;
    const State& s = *params_[std::stoul(name)];
    HostTensor part = HostTensor::make(s.part.type(s.type));
    read_part(s, part.bytes->data());
    if (const std::string where = not_finite(part, false); !where.empty())
      return fmt::format("'{}' holds {}", s.name, where);
  }
  return "";
}

}  // namespace orrery
