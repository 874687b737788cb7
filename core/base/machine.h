// SPDX-License-Identifier: Apache-2.0
//
// Facts of the machine that the process runs on, read from the kernel. [any thread]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orrery {

// The CPUs that this process could run on at the first call, ascending; never empty. The answer is
// kept, so later pinning of threads does not change it.
std::vector<int> allowed_cpus();

// Lets the calling thread run on these CPUs only. Refused (a CPU taken offline), it only costs
// speed.
void run_on(const std::vector<int>& cpus);

// "AMD EPYC 7B13", or "unknown CPU".
std::string cpu_model();

// The instruction sets that kernels choose between and this CPU has: "avx2 fma avx512f".
std::string cpu_features();

// Bytes of physical memory, and bytes that the kernel thinks can be used without swapping.
uint64_t memory_total();
uint64_t memory_available();
// What bounds the memory of this process, in words: "the limit of this process is 390 MiB
// (ulimit -v)", or "21.9 GiB of 23.5 GiB are available".
std::string memory_bound();
// Says that there is not enough memory, in place of "std::bad_alloc".
std::string out_of_memory();
// Says that no thread can be started, in place of "Resource temporarily unavailable".
std::string out_of_threads();

}  // namespace orrery
