// SPDX-License-Identifier: Apache-2.0
//
// The speeds of the machine that a plan is for, per rank and while all ranks work. A file gives
// them in JSON:
//
//   { "matrix_flops": { "f32": 1e11, "bf16": 1e11 },        FLOP/s in matrix products, by dtype
//     "attention_flops": { "f32": [[1e6, 2e10], [1e9, 6e10]] },   in attention; may be left out
//     "matrix_bandwidth": 1e11,                             byte/s, below; may be left out
//     "matrix_tiles": { "processors": 108, "rows": 256,     see product_shape.h; may be left out
//                       "columns": 128, "half_speed": 0.9 },
//     "vector_flops": 1e10,                                 FLOP/s in everything else
//     "memory_bandwidth": 1e10,                             byte/s, read and written
//     "cache_bandwidth": 5e10, "cache_bytes": 2e6,          the same for launches that touch less
//     "launch_seconds": 1e-6,                               before each launch
//     "ranks_per_host": 8,                                  ranks r and s share one if r/8 = s/8
//     "cards_per_host": 4,                                  network cards; may be left out
//     "inside":  { "latency": 2e-6, "bandwidth": 5e9,       a message in a host: seconds, byte/s
//                  "compute": 0.5, "hop": 1e-6 },           see Link; may be left out
//     "between": { "latency": 1e-5, "bandwidth": 1.25e9 }, the same between hosts
//     "levels": [{ "hosts": 4, "latency": 1e-6,             see Level; may be left out
//                  "oversubscription": 2 }],
//     "jitter": 0.01,                                       see slowest(); may be left out
//     "host": { "latency": 1e-6, "bandwidth": 5e9 },        a copy from or to the host's memory,
//     "disk": { "latency": 1e-4, "bandwidth": 5e8 },        or a file; may be left out
//     "memory_bytes": 8e10,                                 what a rank has; may be left out, as
//     "about": "...", "nominal_flops": { "bf16": 1e12 },    all that follows, which the plan's text
//     "reserved_bytes": 4e9, "time_error": 0.1,             uses and its times do not
//     "watts": 700, "price_per_hour": 2, "frameworks": { "mpt": 1.2 },
//     "storage_bandwidth": 1.25e8, "storage_total": 2e12,   of checkpoints: a rank, and all of them
//     "restart_seconds": 90, "repair_hours": 24 }           after a host was lost
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lower/rank_plan.h"
#include "plan/product_shape.h"

namespace orrery {

struct Link {
  double latency = 0, bandwidth = 0;
  double compute = 0;  // the share of its speed that compute loses while bytes travel, up to 1
  double hop = 0;      // seconds of a step of a ring; 0: collectives have the latency of trees
  double seconds(double rounds, double bytes) const { return rounds * latency + bytes / bandwidth; }
};

// Switches of a fabric join groups of so many hosts, numbered as the ranks are. What goes from one
// group to another has this latency in addition, and the links of a group upwards have the
// bandwidth of its hosts' cards / oversubscription.
struct Level {
  int hosts = 1;
  double latency = 0, oversubscription = 1;
};

// The links of a rank: inside its host out and in, then its host's network card out and in.
constexpr size_t kLinks = 4, kBetween = 2;
// How much of each a transfer takes, from 0 to 1.
using LinkUse = std::array<double, kLinks>;

// An exchange as one of its ranks sees it, alone on all links.
struct Trip {
  double seconds = 0;
  LinkUse use{};
};

// FLOP/s of a launch by its FLOPs: a number in the file, or [[FLOPs, FLOP/s], ...] in ascending
// order, between which the logarithms are interpolated. Outside of them the nearest one holds.
class Rate {
 public:
  Rate(double rate) : points_{{1, rate}} {}
  // REQUIRES: at least one point, FLOPs ascending, all above 0.
  Rate(std::vector<std::pair<double, double>> points) : points_(std::move(points)) {}
  double at(double flops) const;
  double highest() const;

 private:
  std::vector<std::pair<double, double>> points_;
};

// By what name machine files have the rate of products of this dtype: both of eight bits have one.
std::string rate_name(int32_t dtype);

struct Machine {
  std::string name;  // that of the file, or "assumed"
  std::map<std::string, Rate> matrix_flops;
  std::map<std::string, Rate> attention_flops;  // of a dtype that is not here: as matrix_flops
  // At which products touch what they do beside cubes of equal FLOPs; 0: that takes no time.
  double matrix_bandwidth = 0;
  Tiles matrix_tiles;  // of no processors: products have none
  double vector_flops = 0, memory_bandwidth = 0, cache_bandwidth = 0, cache_bytes = 0,
         launch_seconds = 0;
  double memory_bytes = 0;                    // 0: not known
  std::string about;                          // what the file stands for
  std::map<std::string, Rate> nominal_flops;  // what the maker says of products, by dtype
  std::map<std::string, double> frameworks;   // how many times as long steps of others took
  std::map<std::string, double> figures;      // the other fields that times do not depend on
  int ranks_per_host = 1;
  int cards_per_host = 0;  // each of as many ranks, in their order; 0: each rank has its own
  Link inside, between;
  std::vector<Level> levels;  // of the fabric between hosts, from the smallest groups on
  double jitter = 0;          // standard deviation of ranks' compute times, as a share of them
  Link host, disk;            // of memory tiers; no bandwidth: not known

  // The time of a launch: the larger of its time for arithmetic and its time for memory. Throws
  // Error for a dtype that matrix_flops lacks.
  double seconds(const Launch& launch) const;
  bool is_bound_by_memory(const Launch& launch) const;
  // An exchange, from when all its ranks are ready: the longer of the most bytes that a rank sends
  // inside its host and those that it sends between hosts (docs/plan.md), plus one latency for
  // every doubling of the number of ranks of a host and of hosts (two if a sum comes back).
  Trip trip(const Exchange& exchange, const Mesh& mesh, int rank) const;
  // What the slowest of so many ranks takes longer than they do on average, as a share: the mean
  // maximum of as many normal deviations (Blom's approximation), times `jitter`.
  double slowest(int ranks) const;
  // A copy between memory tiers. Throws Error for a tier that is not known.
  const Link& link_of(const Exchange& copy) const;
  // The share of its speed that compute loses while the exchange's bytes travel.
  double compute_share(const Exchange& exchange, const Mesh& mesh, int rank) const;
  // Whether not all ranks of the rank's axis are on one host.
  bool spans_hosts(const Mesh& mesh, const std::string& axis, int rank) const;
  // The ranks of a world that send over the rank's network card, if they are several.
  std::vector<int> share_card(int rank, int world) const;

 private:
  double arithmetic_seconds(const Launch& launch) const;
  double memory_seconds(const Launch& launch) const;
  int card_of(int rank) const;
  // What levels add to an exchange of ranks on these hosts, which have so many ranks each.
  struct Detour {
    double latency = 0, slower = 1;
  };
  Detour detour(const Exchange& exchange, const std::map<int, int>& by_host) const;
};

// Reads the machine from a file. "" is the machine that is assumed by default: each rank has one
// CPU core, hosts have 8 ranks, and 10 Gbit/s connect hosts. Throws Error for a field that is
// missing, unknown or not a positive number.
Machine machine_of(const std::string& file);

}  // namespace orrery
