// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel_choice.h"

#include "base/error.h"
#include "lower/abi_op.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {

orr_support choose_kernel(Launch& launch, const std::vector<std::string>& names) {
  orr_support best{};
  std::string reasons;
  AbiOp op(launch);
  for (size_t k = 0; k < names.size(); ++k) {
    const orr_kernel_api& api = Registry::get().kernel(names[k]);
    orr_support s{};
    s.size = sizeof s;
    api.supports(api.self, op.get(), &s);
    if (s.score > best.score) best = s, launch.kernels = static_cast<int>(k);
    if (!s.score) reasons += fmt::format("\n  {}: {}", names[k], s.reason);
  }
  if (!best.score)
    fail(ORR_UNAVAILABLE, "{}no kernel plugin computes {}{}", launch.op.site.prefix(),
         launch.op.kind, reasons);
  launch.numerics = best.numerics, launch.capturable = best.capturable;
  return best;
}

uint64_t workspace_of(const Launch& launch, const std::vector<std::string>& names) {
  const orr_kernel_api& api = Registry::get().kernel(names[static_cast<size_t>(launch.kernels)]);
  orr_kernel_size size{};
  size.size = sizeof size;
  AbiOp op(launch);
  check(api.measure(api.self, op.get(), &size), launch.op.site.prefix() + launch.op.kind);
  return size.workspace;
}

}  // namespace orrery
