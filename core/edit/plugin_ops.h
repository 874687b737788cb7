// SPDX-License-Identifier: Apache-2.0
//
// Ops that plugins bring (orrery/op.h), written into a program as ops that the core knows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "program/program.h"

namespace orrery {

struct PluginOp {
  std::string name, summary, plugin;
  int32_t number = 0, n_in = 1, n_examples = 0;
  bool gradient = false, kernel = false;
  std::vector<std::pair<std::string, Attr>> options;  // and their defaults
};

// Those of all op plugins, which are loaded now if need be. Throws Error where two have one name,
// or one describes itself as none can be. [main thread]
const std::vector<PluginOp>& plugin_ops();

// Types of an example's inputs.
std::vector<Type> example_of(const PluginOp& op, int32_t number);

// Appends a call of the op; options by their order. Throws Error with the current site's prefix.
// REQUIRES: the program stays where it is until it is differentiated.
ValueId add_plugin_op(Program& p, const PluginOp& op, const std::vector<Attr>& options,
                      const std::vector<ValueId>& in);

}  // namespace orrery
