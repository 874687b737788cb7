// SPDX-License-Identifier: Apache-2.0
//
// Says what was tested: the host's kernel plugins and the CPU features that they may have chosen
// by.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "compare.h"
#include "conformance/kernel/cases.h"

namespace {

void print_features() {
  std::printf("cpu:");
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) std::printf(" avx2");
  if (__builtin_cpu_supports("fma")) std::printf(" fma");
  if (__builtin_cpu_supports("f16c")) std::printf(" f16c");
  if (__builtin_cpu_supports("avx512f")) std::printf(" avx512f");
  if (__builtin_cpu_supports("avx512bf16")) std::printf(" avx512bf16");
#endif
  std::printf("\nkernel plugins:");
  for (const std::string& name : kernel_suite::host_plugins()) std::printf(" %s", name.c_str());
  std::printf("\n");
}

// How many cases of each op a plugin takes; tests pass over the rest.
void print_coverage(const std::string& plugin) {
  std::map<std::string, std::pair<int, int>> counts;  // op -> taken, all
  for (const kernel_suite::Case& c : kernel_suite::all_cases()) {
    auto& [taken, all] = counts[c.kind];
    taken += kernel_suite::takes(plugin, c);
    ++all;
  }
  std::printf("%s takes, of the cases of each op:", plugin.c_str());
  for (const auto& [kind, n] : counts) std::printf(" %s %d/%d", kind.c_str(), n.first, n.second);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  print_features();
  for (const std::string& plugin : kernel_suite::host_plugins()) print_coverage(plugin);
  return RUN_ALL_TESTS();
}
