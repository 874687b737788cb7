// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include "conformance/kernel/cases.h"
#include "plugin/registry.h"

namespace kernel_suite {
namespace {

::testing::AssertionResult none(const std::string& fault) {
  if (fault.empty()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << fault;
}

}  // namespace

::testing::AssertionResult equal(const Case&, const std::vector<Values>& got,
                                 const std::vector<Values>& expected) {
  return none(difference(got, expected));
}

::testing::AssertionResult clean(const RunResult& r) { return none(trouble(r)); }

orr_support support_of(const std::string& plugin, const Case& c) {
  const AbiOp op(c);
  orr_support support{};
  support.size = sizeof support;
  const orr_kernel_api& api = orrery::Registry::get().kernel(plugin);
  api.supports(api.self, &op.op, &support);
  return support;
}

}  // namespace kernel_suite
