// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <orrery/sdk/traffic.hpp>
#include <tuple>

#include "base/error.h"
#include "partition/cut_program.h"
#include "partition/passes.h"
#include "partition/stage.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {

uint64_t RankPlan::bytes_sent() const {
  uint64_t sum = 0;
  for (const Step& s : schedule)
    if (s.kind == Step::post) sum += exchanges[static_cast<size_t>(s.index)].bytes_sent;
  return sum;
}

uint64_t RankPlan::bytes_copied() const {
  uint64_t sum = 0;
  for (const Step& s : schedule)
    if (const Exchange* e =
            s.kind == Step::post ? &exchanges[static_cast<size_t>(s.index)] : nullptr;
        e && e->is_copy())
      sum += e->bytes();
  return sum;
}

double RankPlan::flops() const {
  double sum = 0;
  for (const Step& s : schedule)
    if (s.kind == Step::launch) sum += launches[static_cast<size_t>(s.index)].cost.flops;
  return sum;
}

int RankPlan::buckets() const {
  int n = 0;
  for (const Exchange& e : exchanges) n += e.is_bucket();
  return n;
}

uint64_t Exchange::sent_by(int coordinate, int ranks) const {
  if (to.empty()) return orr::traffic::bytes_sent(descriptor(), coordinate, ranks);
  return to[static_cast<size_t>(coordinate)] == coordinate ? 0 : bytes();
}

orr_coll Exchange::descriptor() const {
  orr_coll c{};
  c.size = sizeof c;
  c.op = op, c.dtype = dtype, c.redop = redop, c.root_or_peer = root_or_peer, c.tag = tag;
  c.count = count;
  c.counts = counts.empty() ? nullptr : counts.data();
  c.recv_counts = begins.empty() ? nullptr : begins.data();
  c.leaf_first = leaf_first.empty() ? nullptr : leaf_first.data();
  c.name = name.c_str(), c.where = where.c_str();
  return c;
}

namespace {

void choose_actions(RankPlan& plan) {
  const Mesh& mesh = plan.mesh;
  int calls = static_cast<int>(plan.local.microbatches.calls());
  plan.timetable = mesh.schedule.timetable ? mesh.schedule.timetable(calls)
                                           : std::make_shared<const Timetable>(ActionTables{
                                                 one_after_another(plan.local.program, calls)});
  plan.actions =
      plan.timetable->actions[static_cast<size_t>(mesh.coordinate(mesh.schedule.axis, plan.rank))];
}

// The program of a rank that works alone and has no microbatches: states, but no op.
Program states_alone(const Program& from) {
  Program p;
  for (const Value& v : from.values())
    if (v.state) p.state_value(v.state);
  return p;
}

using ProgramPtr = std::shared_ptr<const Program>;
ProgramPtr own(Program p) { return std::make_shared<const Program>(std::move(p)); }

// Sets what the plan must know of the device that its kernels work on; nothing for the host.
void ask_device(RankPlan& plan) {
  const std::string name =
      plan.kernel_names.empty() ? "host" : Registry::get().kernel(plan.kernel_names.front()).device;
  if (name == "host") return;
  orr_device_facts facts{};
  facts.size = sizeof facts;
  const orr_device_api& device = Registry::get().device(name);
  check(device.facts(device.self, &facts), "device '" + name + "'");
  plan.alignment = std::max(plan.alignment, facts.alignment), plan.outside = facts.outside;
  plan.row_alignment = facts.row_alignment;
}

// Renumbers a rank's microbatches as if they were all there are.
Microbatches by_itself(Microbatches mine) {
  mine.before = mine.first;
  mine.last -= mine.first, mine.first = 0;
  mine.total = mine.in_shapes();
  return mine;
}

void check_enough(int64_t microbatches, const Mesh& mesh) {
  const int least = mesh.least_microbatches();
  if (microbatches >= least) return;
  int ranks = 0;
  for (int c = 0; c < mesh.batch_ranks(); ++c) ranks += mesh.batch_share(c) > 0;
  fail(ORR_INVALID,
       "microbatches = {} are too few to deal to {} ranks{}: give at least {}, or leave the option "
       "out",
       microbatches, ranks, least == ranks ? "" : " in these shares", least);
}

}  // namespace

ModelShard model_shard_of(const LowerRequest& request) {
  const Mesh& mesh = *request.mesh;
  const int rank = request.rank;
  const Program* given = request.cut ? request.cut : request.logical;
  ProgramPtr from(ProgramPtr(), given);  // without owning it
  if (!request.cut && !mesh.placed.empty())
    from = own(cut_program(*request.logical, mesh, rank).program);
  if (mesh.schedule.axis.empty()) return {std::move(from), mesh.sharded};
  StageProgram stage = request.stage_ranks
                           ? split_stages(*from, mesh, *request.stage_ranks, rank)
                           : split_stages(*from, mesh, StageRanks(*from, mesh), rank);
  ModelShard mine{own(std::move(stage.program)), mesh.sharded};
  // States that several stages hold stay whole, because their gradients are added across stages.
  // States that other stages hold are not sharded here.
  for (const std::string& name : stage.tied) mine.sharded.erase(name);
  for (const Value& v : mine.program->values())
    if (v.part.is_flat()) mine.sharded.erase(v.name);
  return mine;
}

// Whether microbatches run in a call each. Where no rank has more than one microbatch and no
// schedule orders them, a single call will do, which needs less memory: gradients leave as they are
// made.
static bool one_by_one(const Mesh& mesh, int64_t microbatches) {
  const Schedule& schedule = mesh.schedule;
  if (!schedule.one_by_one || schedule.timetable || !schedule.axis.empty())
    return schedule.one_by_one;
  const std::vector<int64_t> first = assign_microbatches(microbatches, mesh);
  const auto several = [](int64_t from, int64_t to) { return to - from > 1; };
  return std::adjacent_find(first.begin(), first.end(), several) != first.end();
}

std::shared_ptr<const Program> rank_program(const LowerRequest& request, bool idle) {
  const Mesh& mesh = *request.mesh;
  ModelShard mine = model_shard_of(request);
  if (!mine.sharded.empty() && mesh.gradient_ranks() > 1) {
    Mesh cut = mesh;
    cut.schedule.one_by_one = one_by_one(mesh, request.microbatches);
    cut.sharded = std::move(mine.sharded);
    return own(shard(*mine.program, cut, request.rank));
  }
  if (mesh.alone.on() && idle) return own(states_alone(*mine.program));
  return mine.program;
}

void fuse_ops(LocalProgram& local, const Mesh& mesh, const std::vector<std::string>& kernels) {
  share_equal(local);
  cast_first(local);
  sum_as_stored(local);
  update_late(local);
  fuse_pointwise(local);
  fuse_products(local, kernels);
  join_losses(local, kernels);
  recompute_cheap(local);
  claim_groups(local, kernels, true);
  sum_late(local, mesh);
}

RankPlan lower(const LowerRequest& request) {
  check_whole_batch(*request.logical, *request.mesh);
  const int64_t microbatches = request.microbatches;
  check_enough(microbatches, *request.mesh);
  std::vector<int64_t> first = assign_microbatches(microbatches, *request.mesh);
  Microbatches mine;
  mine.total = microbatches;
  size_t me = static_cast<size_t>(request.mesh->coordinate(request.mesh->batch_axis, request.rank));
  mine.first = first[me], mine.last = first[me + 1];
  if (request.mesh->only) std::tie(mine.first, mine.last) = *request.mesh->only;
  int64_t batch = request.logical->batch_size();
  mine.rows = (batch + microbatches - 1) / microbatches;
  mine.one_by_one = one_by_one(*request.mesh, microbatches);
  if (request.mesh->alone.on()) mine = by_itself(mine);

  RankPlan plan;
  plan.kernel_names = request.kernels;
  ask_device(plan);
  plan.mesh = *request.mesh, plan.rank = request.rank;
  plan.mesh.schedule.one_by_one = mine.one_by_one;
  if (plan.mesh.alone.on()) plan.mesh.batch_axis.clear(), plan.mesh.shares = {};
  plan.local = localize(*rank_program(request, mine.idle()), mine, plan.mesh, first, request.rank);
  merge_groups(plan.local.program);
  gather_rows(plan.local, plan.mesh, request.rank);
  write_in_known_ops(plan.local, request.kernels);
  if (request.fuse) claim_groups(plan.local, request.kernels, false);
  if (request.fuse) fuse_ops(plan.local, plan.mesh, request.kernels);
  if (mine.one_by_one) choose_actions(plan);
  place_values(plan);
  fill_buckets(plan, first);
  make_schedule(plan);
  plan_memory(plan);
  verify(plan);
  return plan;
}

}  // namespace orrery
