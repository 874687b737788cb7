// SPDX-License-Identifier: Apache-2.0
//
// Says what was tested: the host's kernel plugins and the CPU features that they may have chosen by.
#include <gtest/gtest.h>

#include <cstdio>

#include "harness.h"

namespace {

void print_features() {
  std::printf("cpu:");
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) std::printf(" avx2");
  if (__builtin_cpu_supports("fma")) std::printf(" fma");
  if (__builtin_cpu_supports("avx512f")) std::printf(" avx512f");
  if (__builtin_cpu_supports("avx512bf16")) std::printf(" avx512bf16");
#endif
  std::printf("\nkernel plugins:");
  for (const std::string& name : kernels_test::host_plugins()) std::printf(" %s", name.c_str());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  print_features();
  return RUN_ALL_TESTS();
}
