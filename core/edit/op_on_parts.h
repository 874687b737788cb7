// SPDX-License-Identifier: Apache-2.0
//
// Ops of plugins whose inputs are cut along a dim that kernels need whole: what each rank does on
// its part, as the plugin writes it (orrery/op.h, on_parts).
#pragma once

#include <vector>

#include "edit/plugin_ops.h"
#include "program/on_parts.h"

namespace orrery {

// The dims along which the plugin writes the op on parts; without factors for an op that no kernel
// computes.
Sharding part_factors_of(const PluginOp& op, const std::vector<Type>& in);

// PartsRule::run of the op.
bool run_on_parts(OnParts& parts, const PluginOp& op, const Op& at);

// What `ranks` ranks make of an op whose inputs `in` are cut along a factor of part_factors_of, all
// in one program: each result along its dim of that factor; of one that has none, those of all
// ranks, one after another in a dim in front. Throws Error if ranks do not exchange alike.
// REQUIRES: each rank gets at least one element of each cut dim.
std::vector<ValueId> add_on_parts(Program& p, const PluginOp& op, const std::vector<Attr>& options,
                                  const std::vector<ValueId>& in, int factor, int ranks);

}  // namespace orrery
