// SPDX-License-Identifier: Apache-2.0
#include "plan/rank_kinds.h"

#include <orrery/ops.h>

#include <algorithm>
#include <map>
#include <string>

#include "base/error.h"
#include "base/in_parallel.h"
#include "base/text.h"
#include "partition/cut_program.h"
#include "partition/passes.h"
#include "program/op.h"

namespace orrery {
namespace {

// What decides about the plan of an op. Of a split the results that something reads: where a rank's
// share begins does not matter, unless it has other work to do there, as causal attention has.
std::string shape(const Program& p, const Op& op, const std::vector<bool>& read) {
  std::string text = op.kind + to_string(attr_ints(op.attrs, "counts"));
  if (const auto& cost = op_def(op.kind).cost)
    text += fmt::format("{}", cost(args_of(p, op), out_types(p, op)).flops);
  for (ValueId v : op.in) text += to_string(p.type(v));
  for (ValueId v : op.out)
    if (op.kind != "split" || read[static_cast<size_t>(v)]) text += to_string(p.type(v));
  return text;
}

// By op.
std::vector<std::string> shapes(const Program& p) {
  std::vector<bool> read(p.values().size());
  for (const Op& op : p.ops())
    for (ValueId v : op.in) read[static_cast<size_t>(v)] = true;
  for (auto& [state, next] : p.updates()) read[static_cast<size_t>(next)] = true;
  for (auto& [name, v] : p.outputs()) read[static_cast<size_t>(v)] = true;
  std::vector<std::string> found;
  for (const Op& op : p.ops()) found.push_back(shape(p, op, read));
  return found;
}

}  // namespace

RankKinds::RankKinds(const Blueprint& b, ShardSizes sizes)
    : b_(b), sizes_(sizes), first_(assign_microbatches(b.microbatches, b.mesh)) {
  for (const Op& op : b.program.ops()) gathers_ = gathers_ || op.kind == "batch_gather";
  const std::string axis = b.mesh.placed_axis();
  const size_t shares = axis.empty() ? 0 : static_cast<size_t>(b.mesh.size_of(axis));
  cuts_ = in_parallel<Program>(shares, [&](size_t t) {
    return cut_program(b.program, b.mesh, b.mesh.peer(axis, static_cast<int>(t), 0)).program;
  });
  std::map<std::string, int> known;
  std::vector<std::vector<std::string>> by_share;
  for (const Program& cut : cuts_) {
    by_share.push_back(shapes(cut));
    alike_.push_back(
        known.emplace(join(by_share.back(), ""), static_cast<int>(alike_.size())).first->second);
  }
  for (size_t r = 0; b.mesh.schedule.timetable && r + 1 < first_.size();
       ++r)  // made here, on the main thread; plans may be made on others
    b.mesh.schedule.timetable(static_cast<int>(first_[r + 1] - first_[r]));
  if (!b.mesh.sharded.empty() && b.mesh.gradient_ranks() > 1) find_shards();
  std::map<Kind, std::vector<int>> by_kind;
  for (int r = 0; r < b.mesh.world; ++r) by_kind[describe(r)].push_back(r);
  kind_of_.resize(static_cast<size_t>(b.mesh.world));
  for (auto& [kind, who] : by_kind) {
    for (int rank : who) kind_of_[static_cast<size_t>(rank)] = members_.size();
    members_.push_back(std::move(who));
  }
  for (size_t k = 0; k < members_.size(); ++k) stage_ranks_of(program_of(k));
  group_kinds(by_share);
}

const StageRanks* RankKinds::stage_ranks_of(const Program& p) {
  if (b_.mesh.schedule.axis.empty()) return nullptr;
  return &stage_ranks_.try_emplace(&p, p, b_.mesh).first->second;
}

std::pair<int, int> RankKinds::share_and_stage(int rank) const {
  const std::string placed = b_.mesh.placed_axis();
  return {placed.empty() ? 0 : alike_[static_cast<size_t>(b_.mesh.coordinate(placed, rank))],
          b_.mesh.coordinate(b_.mesh.schedule.axis, rank)};
}

void RankKinds::find_shards() {
  std::map<std::pair<int, int>, int> ranks;  // one of each share and stage
  for (int r = b_.mesh.world; r-- > 0;) ranks[share_and_stage(r)] = r;
  for (auto& [which, rank] : ranks) {
    const Program* cut = cut_for(rank);
    ModelShard model_shard = model_shard_of({&b_.program,
                                             &b_.mesh,
                                             b_.microbatches,
                                             rank,
                                             {},
                                             cut,
                                             stage_ranks_of(cut ? *cut : b_.program)});
    Mesh mesh = b_.mesh;
    mesh.sharded = std::move(model_shard.sharded);
    const std::vector<ShardShape> shapes = shard_shapes(*model_shard.program, mesh);
    const auto most = std::max_element(shapes.begin(), shapes.end(),
                                       [](auto& a, auto& b) { return a.elements < b.elements; });
    std::map<std::string, int> known;
    for (const ShardShape& shape : shapes) {
      std::vector<int>& first = shards_[which];
      const int alike = known.emplace(shape.text, static_cast<int>(first.size())).first->second;
      first.push_back(sizes_ == ShardSizes::exact ? alike
                                                  : static_cast<int>(most - shapes.begin()));
    }
  }
}

int RankKinds::shard_of(int rank) const {
  const auto at = static_cast<size_t>(b_.mesh.coordinate(b_.mesh.gradient_axis(), rank));
  return shards_.at(share_and_stage(rank))[at];
}

int RankKinds::planned_rank(size_t kind) const {
  const std::vector<int>& ranks = members_[kind];
  if (sizes_ == ShardSizes::exact || shards_.empty()) return ranks.front();
  const auto found = std::find_if(ranks.begin(), ranks.end(), [&](int rank) {
    return b_.mesh.coordinate(b_.mesh.gradient_axis(), rank) == shard_of(rank);
  });
  return found == ranks.end() ? ranks.front() : *found;
}

void RankKinds::group_kinds(const std::vector<std::vector<std::string>>& shapes) {
  const bool stages_of_shares = !stage_ranks_.empty() && !cuts_.empty();
  std::map<std::pair<Kind, std::string>, size_t> known;
  for (size_t k = 0; k < members_.size(); ++k) {
    const int rank = members_[k].front();
    std::pair<Kind, std::string> what{describe(rank), ""};
    if (stages_of_shares)
      what = {describe(b_.mesh.peer(b_.mesh.placed_axis(), 0, rank)),
              stage_text(k, shapes[static_cast<size_t>(&program_of(k) - cuts_.data())])};
    auto [at, fresh] = known.try_emplace(std::move(what), together_.size());
    if (fresh) together_.emplace_back();
    together_[at->second].push_back(k);
  }
}

std::string RankKinds::stage_text(size_t kind, const std::vector<std::string>& shapes) const {
  const Program& p = program_of(kind);
  const StageRanks& stage_ranks = stage_ranks_.at(&p);
  const int first = members_[kind].front();
  const size_t stage = static_cast<size_t>(b_.mesh.coordinate(b_.mesh.schedule.axis, first));
  std::string text;
  for (size_t i = 0; i < p.ops().size(); ++i) {
    const bool here = stage_ranks.run_at(i).test(stage);
    if (here) text += shapes[i];
    for (ValueId v : p.ops()[i].out) {
      if (!stage_ranks.is_sent(v) || !(here || stage_ranks.needed(v).test(stage))) continue;
      std::string to;
      boost::to_string(stage_ranks.needed(v), to);
      text += fmt::format("%{}:{} {}>{} ", v, to_string(p.type(v)),
                          stage_ranks.run_at(i).find_first(), to);
    }
  }
  return text;
}

void turn_into(RankPlan& plan, int rank) {
  plan.rank = rank;
  for (Exchange& e : plan.exchanges)
    if (!e.axis.empty())
      e.bytes_sent = e.sent_by(plan.mesh.coordinate(e.axis, rank), plan.mesh.size_of(e.axis));
}

Kind RankKinds::describe(int rank) const {
  Kind kind;
  const std::string placed = b_.mesh.placed_axis();
  if (!placed.empty())
    kind.push_back(alike_[static_cast<size_t>(b_.mesh.coordinate(placed, rank))]);
  for (const Axis& axis : b_.mesh.axes) {
    const int at = b_.mesh.coordinate(axis.name, rank);
    if (!has_axis(placed, axis.name) && !has_axis(b_.mesh.batch_axis, axis.name))
      kind.push_back(at);
  }
  if (!shards_.empty()) kind.push_back(shard_of(rank));
  const auto at = static_cast<size_t>(b_.mesh.coordinate(b_.mesh.batch_axis, rank));
  kind.push_back(first_[at + 1] - first_[at]);
  // The rank's share in three sorts of sums: over all ranks that share the batch, over those that
  // gradients are summed over, and over samples of several ranks.
  const std::string sums = b_.mesh.gradient_axis(), gathered = b_.mesh.gathered_axis();
  const std::pair<std::string, std::string> all[] = {
      {b_.mesh.batch_axis, ""}, {sums, ""}, {without_axis(sums, gathered), gathered}};
  for (const auto& [axis, here] : all) {
    const std::vector<int64_t> first = microbatches_on(b_.mesh, first_, axis, rank, here);
    const auto me = static_cast<size_t>(b_.mesh.coordinate(axis, rank));
    kind.push_back(first[me + 1] - first[me]);
    kind.push_back(orr_tree_nodes(first[me], first[me + 1], first.back()));
    kind.push_back(first.back());
  }
  if (gathers_) {  // the last microbatches may have fewer samples than rows
    const int64_t batch = b_.program.batch_size(),
                  rows = (batch + b_.microbatches - 1) / b_.microbatches;
    kind.push_back(std::min(first_[at + 1] * rows, batch) - std::min(first_[at] * rows, batch));
  }
  return kind;
}

const Program& RankKinds::program_of(size_t kind) const {
  const Program* cut = cut_for(members_[kind].front());
  return cut ? *cut : b_.program;
}

const Program* RankKinds::cut_for(int rank) const {
  const std::string axis = b_.mesh.placed_axis();
  return axis.empty() ? nullptr : &cuts_[static_cast<size_t>(b_.mesh.coordinate(axis, rank))];
}

LowerRequest RankKinds::request(size_t kind, const std::vector<std::string>& kernels) const {
  const int rank = planned_rank(kind);
  const Program* cut = cut_for(rank);
  auto stage_ranks = stage_ranks_.find(cut ? cut : &b_.program);
  return {&b_.program,
          &b_.mesh,
          b_.microbatches,
          rank,
          kernels,
          cut,
          stage_ranks == stage_ranks_.end() ? nullptr : &stage_ranks->second};
}

}  // namespace orrery
