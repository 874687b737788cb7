// SPDX-License-Identifier: Apache-2.0
//
// Which tests a plugin has to pass.
#include "conformance/test.h"
#include "plugin/registry.h"

namespace orrery::judge {

std::vector<Test> tests_of(const Subject& subject) {
  if (subject.is_lua()) return lua_strategy_tests();
  const orr_plugin& descriptor = subject.descriptor;
  const std::pair<uint32_t, std::vector<Test> (*)()> suites[] = {
      {descriptor.kinds, plugin_tests},
      {ORR_KIND_KERNEL, kernel_tests},
      {ORR_KIND_COMM, comm_tests},
      {ORR_KIND_STRATEGY, strategy_tests},
      {ORR_KIND_OBSERVER, observer_tests},
      {ORR_KIND_DEVICE, device_tests},
      {ORR_KIND_OP, op_tests},
      {ORR_KIND_DATA, data_tests},
      {kind_boot, boot_tests}};
  std::vector<Test> all;
  for (const auto& [kinds, suite] : suites)
    if (descriptor.kinds & kinds)
      for (Test& test : suite()) all.push_back(std::move(test));
  if (!subject.script.empty() && descriptor.kinds & ORR_KIND_KERNEL)
    for (Test& test : script_tests()) all.push_back(std::move(test));
  return all;
}

}  // namespace orrery::judge
