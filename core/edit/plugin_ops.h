// SPDX-License-Identifier: Apache-2.0
//
// Ops that plugins bring (orrery/op.h). A call of one becomes ops of a program: those that the
// plugin writes it in, or one op that a kernel computes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/op.h"
#include "program/program.h"

namespace orrery {

struct PluginOp {
  std::string name, summary, plugin;
  int32_t number = 0, n_in = 1, n_out = 1, n_examples = 0;
  bool gradient = false;
  bool kernel = false;  // kernels compute it
  bool known = false;   // known ops do, or do where no kernel takes it
  bool sums = false;    // results are sums over the factors that they do not have
  std::vector<std::pair<std::string, Attr>> options;  // and their defaults
};

// The ops of all op plugins, which are loaded now if need be; one that cannot be is left out
// (Registry::loads). Throws Error if two have the same
// name, or a description is wrong. [main thread]
const std::vector<PluginOp>& plugin_ops();

// The op of a plugin that this kind names, if the core has none of that name; else null.
const PluginOp* find_plugin_op(const std::string& kind);

// The values of a call's options, in their order, as these attributes give them. Throws Error for
// one that the op does not have, or of another type.
std::vector<Attr> options_given(const PluginOp& op, const Attrs& attrs);

// The types of the inputs of the op's example `number`.
std::vector<Type> example_of(const PluginOp& op, int32_t number);

// Along which dims a kernel's work on inputs of these types may be cut, as the plugin says, with
// the defaults of all options; without factors for an op that no kernel computes.
Sharding factors_of(const PluginOp& op, const std::vector<Type>& in);

// Appends a call of the op, with the values of its options in their order, and returns its results.
// Throws Error with the current site's prefix. REQUIRES: the program keeps its address until it is
// differentiated. `known`: in known ops, whether a kernel takes the op or not.
std::vector<ValueId> add_plugin_op(Program& p, const PluginOp& op, const std::vector<Attr>& options,
                                   const std::vector<ValueId>& in, bool known = false);

}  // namespace orrery
