// SPDX-License-Identifier: Apache-2.0
//
// A planned step as hashes, which are equal where two builds of Orrery plan alike: of what kernels
// and backends are asked for, and where everything lies. Nothing in it is private to the lowering,
// and names of lines and modules are left out.
#pragma once

#include "edit/blueprint.h"
#include "plan/json.h"

namespace orrery {

// The object with a hash of the whole ("digest") and of each part of each kind of rank ("kinds"),
// programs that run after every so many steps ("periodic") among them.
Json digest_json(const PlanSource& source, const Blueprint& b);

}  // namespace orrery
