// SPDX-License-Identifier: Apache-2.0
#include "plan/digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/in_parallel.h"
#include "lower/abi_op.h"
#include "lower/lower.h"
#include "lower/rank_plan.h"
#include "plan/rank_kinds.h"
#include "plan/traffic.h"

namespace orrery {
namespace {

// One line for each item of a plan.
struct PlanText {
  std::string launches;   // the schedule: launches as plugins get them, and when exchanges begin
  std::string exchanges;  // as backends get them, in the order in which they begin
  std::string memory;     // offsets, bytes and lifetimes of all storages
  std::string states;     // which part of each state the rank holds, and in which memory tier
};

constexpr const char* kRegions[] = {"arena", "comm", "state", "host", "disk"};
constexpr const char* kSteps[] = {"launch", "post", "wait"};

// Where a tensor lies: "arena 256" for the first slot, "of blocks.0.weight 64" in a state's memory.
std::string at(const RankPlan& plan, const Place& place) {
  if (place.storage == kNone) return "nowhere";
  const Storage& s = plan.storage(place.storage);
  if (s.state) return fmt::format("of {} {}", s.state->name, place.offset);
  return fmt::format("{} {}", kRegions[static_cast<int>(s.region)], s.offset + place.offset);
}

std::string attr_text(const orr_attr& a) {
  switch (a.type) {
    case ORR_ATTR_INT: return fmt::format(" {}={}", a.name, a.i);
    case ORR_ATTR_REAL: return fmt::format(" {}={}", a.name, a.f);
    case ORR_ATTR_TEXT: return fmt::format(" {}={}", a.name, a.text);
    default: return fmt::format(" {}={}", a.name, Dims(a.ints, a.ints + a.count));
  }
}

std::string expr_text(const orr_expr* expr) {
  std::string text;
  for (int32_t i = 0; expr && i < expr->n_instrs; ++i) {
    const orr_instr& e = expr->instrs[i];
    text += fmt::format(" {}:{}({},{},{},{})", e.fn, e.dtype, e.a, e.b, e.c, e.imm);
  }
  if (expr)
    text += fmt::format(" stores {}",
                        std::vector<int32_t>(expr->outputs, expr->outputs + expr->n_outputs));
  return text;
}

std::string tensors_text(const RankPlan& plan, const std::vector<orr_tensor>& tensors,
                         const std::vector<Place>& places) {
  std::string text;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const orr_tensor& t = tensors[i];
    text += fmt::format(" {}{}/{}@{}", t.dtype, Dims(t.dims, t.dims + t.rank),
                        Dims(t.strides, t.strides + t.rank), at(plan, places[i]));
  }
  return text;
}

std::string op_text(const orr_op& op) {
  std::string text = op.kind;
  for (int32_t i = 0; i < op.n_attrs; ++i) text += attr_text(op.attrs[i]);
  text += expr_text(op.expr);
  for (int32_t i = 0; op.group && i < op.group->n_ops; ++i) {
    const orr_group_op& one = op.group->ops[i];
    text += fmt::format(" [{} {} {}]", op_text(*one.op), Dims(one.in, one.in + one.op->n_in),
                        Dims(one.out, one.out + one.op->n_out));
  }
  return text;
}

std::string launch_text(const RankPlan& plan, const Launch& launch) {
  std::string text = op_text(*AbiOp(launch).get());
  text += " :" + tensors_text(plan, launch.in, launch.in_at);
  text += " ->" + tensors_text(plan, launch.out, launch.out_at);
  return text + fmt::format(" when {}", static_cast<int>(launch.when));
}

std::string exchange_text(const RankPlan& plan, const Exchange& e) {
  if (e.is_copy())
    return fmt::format("copy {} {} {} from {} to {}", e.to_tier ? "to" : "from", tier_name(e.tier),
                       e.bytes(), at(plan, e.send), at(plan, e.recv));
  return fmt::format(
      "{} over {} dtype {} redop {} peer {} tag {} count {} counts {} begins {} leaves {} to {} "
      "nodes {} from {} to {} bytes {}",
      collective_name(e.op), e.axis, e.dtype, e.redop, e.root_or_peer, e.tag, e.count, e.counts,
      e.begins, e.leaf_first, e.to, e.nodes, at(plan, e.send), at(plan, e.recv), e.bytes_sent);
}

// The plan's schedule, and its exchanges in the order in which they are first begun.
void add_schedule(const RankPlan& plan, PlanText& text) {
  std::map<int, size_t> numbers;
  for (const Step& s : plan.schedule) {
    if (s.kind == Step::post) {
      const bool is_new = numbers.emplace(s.index, numbers.size()).second;
      if (is_new)
        text.exchanges += exchange_text(plan, plan.exchanges[static_cast<size_t>(s.index)]) + "\n";
    }
    const std::string what = s.kind == Step::launch
                                 ? launch_text(plan, plan.launches[static_cast<size_t>(s.index)])
                                 : fmt::format("exchange {}", numbers.at(s.index));
    text.launches += fmt::format("{} {} {} {} {} {}\n", kSteps[s.kind], static_cast<int>(s.segment),
                                 s.chunk, s.microbatch, s.depth, what);
  }
}

std::string memory_text(const RankPlan& plan) {
  std::vector<std::string> lines;
  for (const Storage& s : plan.storages)
    if (!s.state)
      lines.push_back(fmt::format("{} {} bytes {} slots {}x{} alive {}\n",
                                  kRegions[static_cast<int>(s.region)], s.offset, s.bytes, s.slots,
                                  static_cast<int>(s.by), s.alive));
  std::sort(lines.begin(), lines.end());
  return fmt::format("arena {} comm {} state {} host {} {} disk {} {}\n{}", plan.arena_bytes,
                     plan.comm_bytes, plan.state_bytes, plan.host_bytes, plan.host_stash,
                     plan.disk_bytes, plan.disk_stash, fmt::join(lines, ""));
}

std::string states_text(const RankPlan& plan) {
  std::vector<std::string> lines;
  for (const StatePart& held : plan.local.parts)
    lines.push_back(fmt::format("{} {}{} dims {} flat {} {} in {}\n", held.state->name,
                                held.state->type.dtype, held.state->type.dims, held.part.dims,
                                held.part.begin, held.part.end, tier_name(held.tier)));
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, ""));
}

PlanText text_of(const RankPlan& plan) {
  PlanText text;
  add_schedule(plan, text);
  text.memory = memory_text(plan);
  text.states = states_text(plan);
  return text;
}

std::string hash(const std::string& text) {
  Digest digest;
  digest.add(text.data(), text.size());
  return digest.text();
}

Json hashes(const RankPlan& plan) {
  const PlanText text = text_of(plan);
  return {{"launches", hash(text.launches)},
          {"exchanges", hash(text.exchanges)},
          {"memory", hash(text.memory)},
          {"states", hash(text.states)}};
}

// Of the programs that a rank runs after every so many steps.
Json periodic_hashes(const PlanSource& source, const Blueprint& b, int rank) {
  Json all = Json::array();
  for (const Periodic& one : b.asked.periodic)
    for (const auto& round : one.rounds) {
      const Mesh mesh = mesh_of_periodic(b.mesh);
      all.push_back(hashes(lower({round.get(), &mesh, b.microbatches, rank, source.kernels})));
    }
  return all;
}

}  // namespace

Json digest_json(const PlanSource& source, const Blueprint& b) {
  const RankKinds kinds(b);
  const std::vector<Json> all = in_parallel<Json>(kinds.alike().size(), [&](size_t kind) {
    Json json = hashes(lower(kinds.request(kind, source.kernels)));
    json["ranks"] = runs_json(kinds.alike()[kind]);
    json["periodic"] = periodic_hashes(source, b, kinds.planned_rank(kind));
    return json;
  });
  return {{"digest", hash(Json(all).dump())}, {"kinds", all}};
}

}  // namespace orrery
