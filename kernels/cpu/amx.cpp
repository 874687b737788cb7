// SPDX-License-Identifier: Apache-2.0
//
// Whether this process may use AMX's tiles for products of bf16: the CPU has them, and Linux, which
// saves 8 KB more for each thread that has touched them, lets a process ask for them.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"

namespace orr_cpu {
namespace {

constexpr unsigned kLeafFeatures = 7, kBf16Bit = 22, kTileBit = 24;  // of EDX
constexpr long kRequestState = 0x1023, kTileData = 18;               // of arch_prctl(2)

bool cpu_has_tiles() {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid_count(kLeafFeatures, 0, &eax, &ebx, &ecx, &edx) && (edx >> kBf16Bit & 1) &&
         (edx >> kTileBit & 1);
}

}  // namespace

bool amx_works() {
  static const bool works =
      cpu_has_tiles() && ::syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
  return works;
}

}  // namespace orr_cpu
