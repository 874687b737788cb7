// SPDX-License-Identifier: Apache-2.0
//
// Facts of the machine that the process runs on, read from the kernel. [any thread]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

// CPUs that this process could run on when this was first called, ascending; never empty. Later
// calls do not see how threads were pinned since.
std::vector<int> allowed_cpus();

// Lets the calling thread run on these CPUs only. Refused (a CPU taken offline), it only costs
// speed.
void run_on(const std::vector<int>& cpus);

// "AMD EPYC 7B13", or "unknown CPU".
std::string cpu_model();

// Of the instruction sets that kernels choose between, those present: "avx2 fma avx512f".
std::string cpu_features();

// Bytes of physical memory, and of what the kernel thinks can be used without swapping.
uint64_t memory_total();
uint64_t memory_available();

}  // namespace orrery
