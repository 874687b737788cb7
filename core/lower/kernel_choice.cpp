// SPDX-License-Identifier: Apache-2.0
#include "lower/kernel_choice.h"

#include <algorithm>

#include "base/error.h"
#include "lower/abi_op.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {

namespace {

constexpr const char* permission = "numerics";  // orrery/ops.h; what kernels need not know

orr_support ask(const Launch& launch, const std::string& name) {
  const orr_kernel_api& api = Registry::get().kernel(name);
  orr_support s{};
  s.size = sizeof s;
  const AbiOp op(launch);
  api.supports(api.self, op.get(), &s);
  return s;
}

}  // namespace

orr_support choose_kernel(Launch& launch, const std::vector<std::string>& names) {
  orr_support best{};
  std::string reasons;
  Launch plain = launch;
  const bool permits = plain.op.attrs.erase(permission) > 0;
  bool ignored = false;
  for (size_t k = 0; k < names.size(); ++k) {
    orr_support s = ask(launch, names[k]);
    const bool without = !s.score && permits;
    if (without) s = ask(plain, names[k]);
    if (s.score > best.score) best = s, launch.kernels = static_cast<int>(k), ignored = without;
    if (!s.score) reasons += fmt::format("\n  {}: {}", names[k], s.reason);
  }
  if (ignored) launch.op.attrs.erase(permission);
  if (!best.score)
    fail(ORR_UNAVAILABLE, "{}no kernel plugin computes {}{}", launch.op.site.prefix(),
         launch.op.kind, reasons);
  launch.numerics = best.numerics, launch.capturable = best.capturable;
  return best;
}

bool is_taken(const Launch& launch, const std::vector<std::string>& names) {
  Launch plain = launch;
  plain.op.attrs.erase(permission);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return ask(plain, name).score > 0; });
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
