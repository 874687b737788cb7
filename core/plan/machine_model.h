// SPDX-License-Identifier: Apache-2.0
//
// What a cost model needs to know of the machine that a plan is for, per rank and with all ranks at
// work. A file names it in JSON:
//
//   { "matrix_flops": { "f32": 1e11, "bf16": 1e11 },        FLOP/s in matrix products, by dtype
//     "vector_flops": 1e10,                                 FLOP/s in everything else
//     "memory_bandwidth": 1e10,                             byte/s, read and written
//     "cache_bandwidth": 5e10, "cache_bytes": 2e6,          the same for launches that touch less
//     "launch_seconds": 1e-6,                               before each launch
//     "ranks_per_host": 8,                                  ranks r and s share one if r/8 = s/8
//     "inside":  { "latency": 2e-6, "bandwidth": 5e9 },     a message in a host: seconds, byte/s
//     "between": { "latency": 1e-5, "bandwidth": 1.25e9 } } the same between hosts
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lower/rank_plan.h"

namespace orrery {

struct Link {
  double latency = 0, bandwidth = 0;
  double seconds(double rounds, double bytes) const { return rounds * latency + bytes / bandwidth; }
};

struct Machine {
  std::string name;  // the file's, or "assumed"
  std::map<std::string, double> matrix_flops;
  double vector_flops = 0, memory_bandwidth = 0, cache_bandwidth = 0, cache_bytes = 0,
         launch_seconds = 0;
  int ranks_per_host = 1;
  Link inside, between;

  // The longer of computing and touching memory; throws Error for a dtype that matrix_flops lacks.
  double seconds(const Launch& launch) const;
  // Once all that take part are ready: the most that one of them sends, over the slowest link, and
  // for every doubling of their number a latency (two if a sum comes back).
  double seconds(const Exchange& exchange, const Mesh& mesh, int rank) const;
};

// The machine of a file; "" is the one assumed by default: ranks of one CPU core each on hosts of
// 8, 10 Gbit/s between hosts. Throws Error for a field that is missing, unknown or no positive
// number.
Machine machine_of(const std::string& file);

}  // namespace orrery
