// SPDX-License-Identifier: Apache-2.0
#include "plan/machine_model.h"

#include <orrery/sdk/traffic.hpp>

#include <algorithm>
#include <bit>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <map>

#include "base/error.h"
#include "lower/channel.h"
#include "plan/traffic.h"
#include "program/eight_bits.h"

namespace orrery {
namespace {

double most_sent(const Exchange& e, int ranks) {
  if (is_message(e)) return static_cast<double>(e.count * orr_dtype_bytes(e.dtype));
  const orr_coll c = e.descriptor();
  const int64_t total = c.counts ? orr::traffic::sum(c.counts, ranks) : 0;
  uint64_t most = 0;
  for (int r = 0; r < ranks; ++r)
    most = std::max(most, orr::traffic::bytes_sent(c, r, ranks, total));
  return static_cast<double>(most);
}

bool comes_back(const Exchange& e) {
  return e.op == ORR_COLL_ALL_REDUCE || e.op == ORR_COLL_TREE_ALL_REDUCE;
}

double rounds(const Exchange& e, int ranks) {
  if (is_message(e)) return 1;
  return (comes_back(e) ? 2 : 1) * std::bit_width(static_cast<unsigned>(ranks - 1));
}

// Of a collective of so many members of a link. Libraries have trees for sums that come back, and
// pieces go round a ring.
double latency(const Exchange& e, const Link& link, int members) {
  const double tree = rounds(e, members) * link.latency;
  if (link.hop == 0 || e.op == ORR_COLL_ALL_TO_ALL) return tree;
  const double ring = (members - 1) * link.hop;
  return comes_back(e) ? std::min(tree, 2 * ring) : ring;
}

bool is_attention(const Launch& launch) { return launch.op.kind.starts_with("attention"); }

}  // namespace

double Rate::at(double flops) const {
  size_t i = 0;
  while (i + 1 < points_.size() && points_[i + 1].first < flops) ++i;
  if (flops <= points_[i].first || i + 1 == points_.size()) return points_[i].second;
  const auto& [from, slow] = points_[i];
  const auto& [to, fast] = points_[i + 1];
  return slow * std::pow(fast / slow, std::log(flops / from) / std::log(to / from));
}

double Rate::highest() const {
  double most = 0;
  for (const auto& [flops, rate] : points_) most = std::max(most, rate);
  return most;
}

std::string rate_name(int32_t dtype) { return is_eight_bits(dtype) ? "f8" : dtype_name(dtype); }

double Machine::arithmetic_seconds(const Launch& launch) const {
  const Cost& cost = launch.cost;
  if (!cost.matrix) return cost.flops / vector_flops;
  const std::string dtype = rate_name(launch.in.front().dtype);
  auto known = attention_flops.find(dtype);
  if (!is_attention(launch) || known == attention_flops.end()) known = matrix_flops.find(dtype);
  if (known == matrix_flops.end())
    fail(ORR_INVALID,
         "{}{} multiplies matrices of {}, but machine '{}' has no matrix_flops.{}: add it",
         launch.op.site.prefix(), launch.op.kind, dtype, name, dtype);
  double seconds = cost.flops / known->second.at(cost.flops);
  const ProductShape shape = shape_of(launch);
  if (shape.count == 0) return seconds;
  if (matrix_tiles.processors > 0) seconds /= matrix_tiles.reached(shape);
  const double bytes =
      shape.surplus() * static_cast<double>(orr_dtype_bytes(launch.in.front().dtype));
  return matrix_bandwidth > 0 ? seconds + bytes / matrix_bandwidth : seconds;
}

double Machine::memory_seconds(const Launch& launch) const {
  const double bytes = launch.cost.bytes;
  return bytes / (bytes <= cache_bytes ? cache_bandwidth : memory_bandwidth);
}

double Machine::seconds(const Launch& launch) const {
  return launch_seconds + std::max(arithmetic_seconds(launch), memory_seconds(launch));
}

bool Machine::is_bound_by_memory(const Launch& launch) const {
  return memory_seconds(launch) > arithmetic_seconds(launch);
}

bool Machine::spans_hosts(const Mesh& mesh, const std::string& axis, int rank) const {
  for (int i = 0; i < mesh.size_of(axis); ++i)
    if (mesh.peer(axis, i, rank) / ranks_per_host != rank / ranks_per_host) return true;
  return false;
}

double Machine::compute_share(const Exchange& e, const Mesh& mesh, int rank) const {
  return spans_hosts(mesh, e.axis, rank) ? std::max(inside.compute, between.compute)
                                         : inside.compute;
}

int Machine::card_of(int rank) const {
  const int host = rank / ranks_per_host, at = rank % ranks_per_host;
  return host * cards_per_host + at * cards_per_host / ranks_per_host;
}

std::vector<int> Machine::share_card(int rank, int world) const {
  if (cards_per_host == 0 || cards_per_host == ranks_per_host) return {};
  std::vector<int> ranks;
  const int first = rank / ranks_per_host * ranks_per_host;
  for (int r = first; r < std::min(first + ranks_per_host, world); ++r)
    if (card_of(r) == card_of(rank)) ranks.push_back(r);
  return ranks;
}

const Link& Machine::link_of(const Exchange& copy) const {
  const Link& link = copy.tier == Tier::disk ? disk : host;
  const char* tier = tier_name(copy.tier);
  if (link.bandwidth == 0)
    fail(ORR_INVALID,
         "the step copies tensors from and to {}, but machine '{}' has no field {}: add it", tier,
         name, tier);
  return link;
}

double Machine::slowest(int ranks) const {
  if (jitter == 0 || ranks < 2) return 0;
  return jitter * quantile(boost::math::normal(), (ranks - 0.375) / (ranks + 0.25));
}

Machine::Detour Machine::detour(const Exchange& e, const std::map<int, int>& by_host) const {
  Detour found;
  const auto hosts = static_cast<double>(by_host.size());
  for (const Level& level : levels) {
    std::map<int, int> groups;
    for (auto& [host, ranks] : by_host) ++groups[host / level.hosts];
    if (groups.size() < 2) continue;
    found.latency += rounds(e, static_cast<int>(groups.size())) * level.latency;
    int fewest = groups.begin()->second;
    for (auto& [group, n] : groups) fewest = std::min(fewest, n);
    // A ring leaves a group once, however many of the group's hosts it visits; all hosts of the
    // group are on such rings. What all send to all leaves it more often.
    const bool all_to_all = e.op == ORR_COLL_ALL_TO_ALL;
    const double leaves = all_to_all ? (hosts - fewest) / (hosts - 1) : 1.0 / fewest;
    found.slower = std::max(found.slower, level.oversubscription * leaves);
  }
  return found;
}

Trip Machine::trip(const Exchange& e, const Mesh& mesh, int rank) const {
  const int ranks = mesh.size_of(e.axis);
  auto host = [&](int at) { return mesh.peer(e.axis, at, rank) / ranks_per_host; };
  const double bytes = most_sent(e, ranks);
  // What one card sends if no other rank uses it.
  const double card = between.bandwidth * (cards_per_host ? ranks_per_host / cards_per_host : 1);
  if (is_message(e)) {
    const bool near = host(e.root_or_peer) == rank / ranks_per_host;
    const Detour far = detour(e, {{host(e.root_or_peer), 1}, {rank / ranks_per_host, 1}});
    const double way = bytes / (near ? inside.bandwidth : card / far.slower);
    const double seconds = (near ? inside : between).latency + far.latency + way;
    LinkUse use{};
    if (way > 0) use[(near ? 0 : kBetween) + (e.op == ORR_COLL_RECV)] = way / seconds;
    return {seconds, use};
  }
  std::map<int, int> by_host;
  for (int at = 0; at < ranks; ++at) ++by_host[host(at)];
  int fewest = ranks, most = 1;
  for (auto& [_, n] : by_host) fewest = std::min(fewest, n), most = std::max(most, n);
  const auto hosts = static_cast<int>(by_host.size());
  // What leaves a host leaves it once, a part from each of its ranks. In an exchange of all with
  // all nothing is left out.
  const bool all_to_all = e.op == ORR_COLL_ALL_TO_ALL;
  const double leave = hosts == 1   ? 0
                       : all_to_all ? bytes * (ranks - fewest) / (ranks - 1)
                                    : bytes / fewest;
  const Detour far = detour(e, by_host);
  const double within = most > 1 ? bytes / inside.bandwidth : 0, across = leave / card * far.slower;
  const double seconds = latency(e, inside, most) + latency(e, between, hosts) + far.latency +
                         std::max(within, across);
  if (within + across == 0) return {seconds, {}};
  return {seconds, {within / seconds, within / seconds, across / seconds, across / seconds}};
}

}  // namespace orrery
