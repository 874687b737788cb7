// SPDX-License-Identifier: Apache-2.0
//
// Op kinds that are not of ops/: what plugins bring with kernels of their own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "program/op.h"

namespace orrery {

// Its kernels see contiguous tensors, with all attributes, and add nothing up over the batch.
struct CustomKind {
  std::string name;
  std::function<std::vector<Type>(const OpArgs&)> infer;
  std::function<Sharding(const OpArgs&, const std::vector<Type>& out)> sharding;
  std::function<void(Gradient&, const Op&)> gradient;
};

// From now on op_def knows the kind. REQUIRES: it knew none of that name. [main thread]
void add_kind(CustomKind kind);

// The row of such a kind, null if there is none.
const OpDef* custom_kind(const std::string& name);

}  // namespace orrery
