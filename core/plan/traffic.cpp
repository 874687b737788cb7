// SPDX-License-Identifier: Apache-2.0
#include "plan/traffic.h"

#include <string>

namespace orrery {
namespace {

// The bytes that a rank sends in a step. Ranks that have the same plan may differ by the size of
// their share of a bucket.
uint64_t sent_by(const RankPlan& plan, const std::map<int, int64_t>& times, int rank) {
  uint64_t sum = 0;
  for (auto& [index, n] : times) {
    const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
    sum += static_cast<uint64_t>(n) *
           e.sent_by(plan.mesh.coordinate(e.axis, rank), plan.mesh.size_of(e.axis));
  }
  return sum;
}

Json sends_json(const RankPlan& plan, const std::map<int, int64_t>& times,
                const std::vector<int>& ranks) {
  std::map<uint64_t, std::vector<int>> by_bytes;
  for (int rank : ranks) by_bytes[sent_by(plan, times, rank)].push_back(rank);
  Json sends = Json::array();
  for (auto& [bytes, who] : by_bytes)
    sends.push_back({{"bytes", bytes}, {"ranks", runs_json(who)}});
  return sends;
}

Json exchange_json(const Exchange& e, int64_t times) {
  Json json = {{"name", e.name},
               {"times", times},
               {"op", collective_name(e.op)},
               {"elements", e.count},
               {"dtype", dtype_name(e.dtype)},
               {"sent_bytes", e.bytes_sent * static_cast<uint64_t>(times)},
               {"origin", e.origin}};
  if (e.is_bucket()) json["tensors"] = e.totals.size(), json["nodes"] = e.nodes;
  if (!e.where.empty()) json["where"] = e.where;
  if (!e.axis.empty()) json["axis"] = e.axis;
  return json;
}

Json copies_json(const RankPlan& plan) {
  struct Moved {
    uint64_t in = 0, out = 0;
    int64_t copies = 0;
  };
  std::map<Tier, Moved> moved;
  for (auto& [index, n] : times_posted(plan)) {
    const Exchange& e = plan.exchanges[static_cast<size_t>(index)];
    if (!e.is_copy()) continue;
    Moved& m = moved[e.tier];
    (e.to_tier ? m.out : m.in) += e.bytes() * static_cast<uint64_t>(n);
    m.copies += n;
  }
  Json copies = Json::array();
  for (auto& [tier, m] : moved)
    copies.push_back({{"tier", tier_name(tier)},
                      {"read_bytes", m.in},
                      {"written_bytes", m.out},
                      {"copies", m.copies}});
  return copies;
}

Json predicted_json(const RankPlan& plan, const std::vector<StrategyUse>& stack, int rank) {
  Json all = Json::array();
  for (const Prediction& p : predictions(plan, stack, rank))
    if (p.counted + p.predicted > 0)
      all.push_back({{"strategy", p.strategy}, {"bytes", p.predicted}, {"counted", p.counted}});
  return all;
}

}  // namespace

Json traffic_json(const RankPlan& plan, const std::vector<int>& ranks,
                  const std::vector<StrategyUse>& stack) {
  std::map<int, int64_t> times = times_posted(plan);
  std::erase_if(times,
                [&](auto& t) { return plan.exchanges[static_cast<size_t>(t.first)].is_copy(); });
  Json json = {{"exchanges", Json::array()}, {"copies", copies_json(plan)}};
  int64_t operations = 0;
  for (auto& [index, n] : times) {
    operations += n;
    json["exchanges"].push_back(exchange_json(plan.exchanges[static_cast<size_t>(index)], n));
  }
  json["operations"] = operations;
  if (!times.empty()) json["sends"] = sends_json(plan, times, ranks);
  if (const Alone& own = plan.mesh.alone; own.on()) json["driven_by"] = own.strategy;
  if (plan.bytes_sent()) json["predicted"] = predicted_json(plan, stack, ranks.front());
  return json;
}

const char* collective_name(int32_t op) {
  switch (op) {
    case 0: return "copy";
    case ORR_COLL_BROADCAST: return "broadcast";
    case ORR_COLL_ALL_REDUCE: return "all_reduce";
    case ORR_COLL_REDUCE_SCATTER: return "reduce_scatter";
    case ORR_COLL_ALL_GATHER: return "all_gather";
    case ORR_COLL_ALL_TO_ALL: return "all_to_all";
    case ORR_COLL_SEND: return "send";
    case ORR_COLL_RECV: return "recv";
    case ORR_COLL_TREE_ALL_REDUCE: return "tree all_reduce";
    case ORR_COLL_TREE_REDUCE_SCATTER: return "tree reduce_scatter";
    default: return "exchange";
  }
}

const char* tier_name(Tier tier) { return tier == Tier::disk ? "disk" : "host"; }

}  // namespace orrery
