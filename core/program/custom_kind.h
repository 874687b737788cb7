// SPDX-License-Identifier: Apache-2.0
//
// Op kinds that plugins bring, with kernels of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "program/on_parts.h"
#include "program/op.h"

namespace orrery {

// Kernels of such a kind get contiguous tensors and all attributes. They sum over the samples of no
// more than one microbatch (partition/samples/by_microbatch.h).
struct CustomKind {
  std::string name;
  bool sums = false;  // Sharding::sums
  std::function<std::vector<Type>(const OpArgs&)> infer;
  std::function<Sharding(const OpArgs&, const std::vector<Type>& out)> sharding;
  std::function<void(Gradient&, const Op&)> gradient;
  std::function<Cost(const OpArgs&, const std::vector<Type>& out)> cost;
  std::function<bool(OnParts&, const Op&)> on_parts;  // PartsRule::run
  // Writes such an op in others, for where no kernel takes it, and returns its results; null: there
  // is no other way.
  std::function<std::vector<ValueId>(Program&, const Op&)> in_known_ops;
};

// Adds a kind to those that op_def knows. REQUIRES: it knows none of that name. [main thread]
void add_kind(CustomKind kind);

// The row of such a kind; null if there is none of that name.
const OpDef* custom_kind(const std::string& name);

// Such a kind itself; null if there is none of that name.
const CustomKind* find_custom(const std::string& name);

}  // namespace orrery
