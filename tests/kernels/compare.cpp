// SPDX-License-Identifier: Apache-2.0
#include "compare.h"

#include "check/kernel/cases.h"
#include "sampled.h"

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

::testing::AssertionResult near(const Case& c, const std::vector<Values>& got,
                                const std::vector<Values>& expected) {
  return none(distance(c, got, expected));
}

::testing::AssertionResult clean(const RunResult& r) { return none(trouble(r)); }

std::vector<Param> params(const std::vector<std::string>& plugins, bool (*wanted)(const Case&)) {
  std::vector<Param> all;
  for (const std::string& plugin : plugins)
    for (const Case& c : all_cases())
      if (wanted(c)) all.push_back({plugin, c});
  return sampled(all);
}

}  // namespace kernel_suite
