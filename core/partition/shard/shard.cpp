// SPDX-License-Identifier: Apache-2.0
//
// Shards training state in one rank's program (partition/passes.h). Three ranks, one parameter w
// whose gradients and optimizer states are sharded, on rank 1 (shards end at multiples of 1,024):
//
//   g = total(sum)      f32[3072]   ->  g = total(sum)            f32[1024], a reduce-scatter
//   w' = w - 0.1 g      f32[3072]   ->  w' = w[1024:2048] - 0.1 g     f32[1024]
//   new w = w'                      ->  new w = all_gather(w')    f32[3072]
//
// Where the parameter is sharded too, its state is f32[1024], the last all_gather is left out, and
// forward and backward gather it where they read it (early.h).
//
// The update is emitted in rounds. A round ends with its reductions of whole tensors, such as
// norms: each rank reduces the blocks of its shard, the ranks gather the blocks' results, and every
// rank combines them. Ops that read the resulting scalar belong to the next round. The blocks and
// the tree over them are those of a sum in one process (orrery/ops.h, SUMS), so that the bits are,
// too.
#include "partition/passes.h"

#include <orrery/ops.h>
#include <orrery/strategy.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "partition/shard/early.h"
#include "partition/shard/sharded_params.h"
#include "partition/shard/units.h"
#include "partition/shared/blocks.h"
#include "partition/shared/gather.h"
#include "program/build.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

class Sharder {
 public:
  Sharder(const Program& p, const Mesh& mesh, int rank)
      : from_(p),
        mesh_(mesh),
        rank_(rank),
        units_(find_units(p, mesh)),
        params_(p, units_, mesh.gradient_axis()),
        scatters_(find_scatters(p, mesh, units_, params_)) {
    for (Scatter& s : scatters_)
      for (auto& [member, sum] : s.sums) scatter_of_[sum] = &s;
  }

  Program run() {
    to_ = from_.without_ops();
    for (size_t v = 0; v < from_.values().size(); ++v)
      if (from_.values()[v].state) shard_state(static_cast<ValueId>(v));
    for (const Unit& unit : units_)
      to_.keep_together({unit.read, unit.how.axis, most_bytes(from_, unit)});
    emit_early(from_, mesh_, rank_, units_, scatters_, to_);
    to_.set_phase(Phase::update);
    find_rounds();
    for (int round = 0; round <= last_round_; ++round) emit_round(round);
    emit_updates();
    for (auto& [name, v] : to_.mutable_outputs()) v = whole(v);
    return std::move(to_);
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  const Unit& unit_of(const ShardedParam& param) const { return units_[param.unit]; }

  // Which elements of a parameter's tensors this rank has: its shard.
  Range range_of(const ShardedParam& param) const {
    return held_by(*param.cuts, mesh_.coordinate(unit_of(param).how.axis, rank_));
  }
  // Whether this rank is the owner of the whole parameter (or there are no other ranks).
  bool has_all(const ShardedParam& param) const {
    return range_of(param).size() == param.cuts->back();
  }

  // Whether every rank has the whole state, because forward reads it.
  bool is_replicated(ValueId v) const {
    const ShardedParam* param = params_.of(v);
    return param && !unit_of(*param).in_pieces() && unit_of(*param).read[param->member] == v;
  }

  // Leaves this rank its shard of a state.
  void shard_state(ValueId state) {
    const ShardedParam* param = params_.of(state);
    if (!param || is_replicated(state) || has_all(*param)) return;
    Value& v = to_.mutable_value(state);
    const Range r = range_of(*param);
    v.layout = v.layout.with(unit_of(*param).how.axis, unit_of(*param).lies());
    v.type.dims = {r.size()};
    if (r.size() > 0)
      v.part.begin = r.begin, v.part.end = r.end;
    else
      v.part = {{}, 0, 0};
  }

  // An op belongs to the round after the gathers that it needs. Exchanges keep their order.
  void find_rounds() {
    int exchange = 0;  // the round of the next exchange, at the earliest
    std::vector<int> ready(from_.values().size(), 0);
    round_of_.assign(from_.ops().size(), 0);
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase != Phase::update) continue;
      for (ValueId v : op.in) round_of_[i] = std::max(round_of_[i], ready[at(v)]);
      const int done = params_.gathers(op);
      if (is_exchange(op.kind))
        round_of_[i] = std::max(round_of_[i], exchange), exchange = round_of_[i] + done;
      for (ValueId v : op.out) ready[at(v)] = round_of_[i] + done;
      last_round_ = std::max(last_round_, round_of_[i]);
    }
  }

  // Emits the ops of a round: first those on shards, then those that need whole tensors.
  void emit_round(int round) {
    std::vector<const Op*> last;
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase != Phase::update || round_of_[i] != round) continue;
      if (params_.gathers(op))
        last.push_back(&op);
      else
        emit(op);
    }
    emit_gathering(last);
  }

  // Of the reductions, the first one of each parameter of a unit share an exchange, then the second
  // ones, and so on.
  void emit_gathering(const std::vector<const Op*>& last) {
    std::map<std::tuple<size_t, int32_t, int>, Reductions> groups;  // by unit, dtype and number
    std::map<std::pair<size_t, size_t>, int> seen;                  // by unit and member
    for (const Op* op : last) {
      if (!is_whole_reduce(from_, *op)) {
        append(*op);
        continue;
      }
      const ShardedParam& param = *params_.of(op->in[0]);
      const int n = seen[{param.unit, param.member}]++;
      const int32_t dtype =  // a tensor that one rank holds whole is reduced there
          cut_inside(*param.cuts) ? block_dtype(from_, *op) : from_.type(op->out[0]).dtype;
      groups[{param.unit, dtype, n}][param.member] = op;
    }
    for (auto& [key, members] : groups) reduce_together(members, std::get<1>(key));
  }

  void emit(const Op& op) {
    to_.set_site(op.site);
    const ShardedParam* param = params_.of(op);
    if (param && op.kind == "total")
      emit_total(op, *param);
    else if (!param || has_all(*param))
      append(op);
    else if (range_of(*param).size() > 0)
      emit_on_shard(op, *param);
  }

  // Appends an op on tensors that this rank has whole, or that are gathered for it.
  void append(const Op& op) {
    to_.set_site(op.site);
    Op copy = op;
    copy.twin = kNone;
    for (ValueId& v : copy.in) v = params_.gathers(op) ? whole(v) : local(v);
    to_.append(std::move(copy));
  }

  // What stands for v in the update of this rank: its shard, if v is sharded.
  ValueId local(ValueId v) const {
    const auto found = local_.find(v);
    return found == local_.end() ? v : found->second;
  }

  // Emits a total as a reduce-scatter: all ranks give their tree nodes of the whole tensor, and
  // each gets its piece of the sum. With replicas a piece is a part of the shard, and is gathered
  // then.
  void emit_total(const Op& op, const ShardedParam& param) {
    if (const auto sent = scatter_of_.find(op.in[0]); sent != scatter_of_.end())
      return emit_scattered(op, param, *sent->second);
    const Unit& unit = unit_of(param);
    const int64_t all = from_.type(op.out[0]).elements();
    Op cut = cut_total(op, param, cut_as(unit.pieces[param.member], all));
    const int64_t own =
        cut.exchange().pieces->count[at(mesh_.coordinate(mesh_.gradient_axis(), rank_))];
    if (own < all) cut.out = {new_part(op.out[0], own, param)};
    const ValueId out = cut.out[0];
    to_.append(std::move(cut));
    local_[op.out[0]] = out;
    if (pieces_per_shard(mesh_, unit.how) > 1) gather_from_replicas(op.out[0], param);
  }

  // The total with what says which rank gets which elements.
  Op cut_total(const Op& op, const ShardedParam& param, const Dims& cuts) {
    const Unit& unit = unit_of(param);
    SumShards pieces{{},
                     {},
                     static_cast<int64_t>(param.unit),
                     static_cast<int64_t>(param.member),
                     uses_[{param.unit, param.member}]++,
                     unit.how.origin,
                     unit.how.what >= ORR_SHARD_GRADIENT};
    for (int r = 0; r < mesh_.gradient_ranks(); ++r) {
      Range piece = held_by(cuts, unit.piece_of[at(r)]);
      pieces.begin.push_back(piece.begin), pieces.count.push_back(piece.size());
    }
    Op cut = op;
    cut.twin = kNone;
    cut.set_exchange({.pieces = std::move(pieces)});
    return cut;
  }

  // Emits a total of a sum that is reduce-scattered after each microbatch already (each.h).
  void emit_scattered(const Op& op, const ShardedParam& param, Scatter& s) {
    if (range_of(param).size() == 0) return;
    if (s.completed.empty()) complete_scattered(op, param, s);
    const ValueId own = s.completed.at(param.member);
    local_[op.out[0]] = has_all(param) ? build::reshape(to_, own, from_.type(op.out[0]).dims) : own;
  }

  // Emits one total for all sums of the scatter, and splits what it completes.
  void complete_scattered(const Op& op, const ShardedParam& param, Scatter& s) {
    Op total;
    total.kind = "total", total.in = {s.piece}, total.site = op.site;
    total.out = {new_part(op.out[0], to_.type(s.piece).elements(), param)};
    const ValueId all = total.out[0];
    to_.append(std::move(total));
    Dims sizes;
    std::copy_if(s.own.begin(), s.own.end(), std::back_inserter(sizes),
                 [](int64_t n) { return n > 0; });
    const std::vector<ValueId> parts =
        sizes.size() == 1 ? std::vector{all} : build::split(to_, all, 0, sizes);
    size_t part = 0, member = 0;
    for (auto& [index, sum] : s.sums)
      if (s.own[member++] > 0) s.completed[index] = parts[part++];
  }

  // The ranks that hold the same shard have one piece of it each: gathers the whole shard on them.
  void gather_from_replicas(ValueId sum, const ShardedParam& param) {
    const Unit& unit = unit_of(param);
    if (range_of(param).size() == 0) return;
    const std::string outer = mesh_.replicas_of(unit.how.axis);
    const int per = pieces_per_shard(mesh_, unit.how),
              first = mesh_.coordinate(unit.how.axis, rank_) * per;
    const Type& type = from_.type(sum);
    const Dims cuts = cut_as(unit.pieces[param.member], type.elements());
    const Dims shard(cuts.begin() + first, cuts.begin() + first + per + 1);
    ValueId all = gather_together(to_, {{{local(sum)}, shard}}, type.dtype,
                                  {outer, unit.how.origin, mesh_.coordinate(outer, rank_)})[0];
    local_[sum] = has_all(param) ? build::reshape(to_, all, type.dims) : all;
  }

  // Emits an elementwise op on this rank's shard.
  void emit_on_shard(const Op& op, const ShardedParam& param) {
    const Range r = range_of(param);
    Op cut = op;
    cut.twin = kNone;
    for (ValueId& v : cut.in) v = from_.type(v).dims.empty() ? local(v) : shard_of(v, param);
    if (cut.attrs.has("dims")) cut.attrs.set("dims", Dims{r.size()});
    for (const orr_instr& i : op.expr.instrs)
      if (i.fn == ORR_FN_RAND) cut.expr.instrs[at(i.c)].imm += static_cast<double>(r.begin);
    for (ValueId& v : cut.out) v = local_[v] = new_part(v, r.size(), param);
    to_.append(std::move(cut));
  }

  // A new value: so many elements of v, flat.
  ValueId new_part(ValueId v, int64_t elements, const ShardedParam& param) {
    const ValueId piece = to_.new_value({from_.type(v).dtype, {elements}}, Role::activation);
    const Layout layout = from_.value(v).layout.with_batch(Batch::none).with_varying({});
    to_.mutable_value(piece).layout = layout.with(unit_of(param).how.axis, unit_of(param).lies());
    return piece;
  }

  // This rank's shard of the tensor v, cut as the parameter is: flat, or in v's shape if it is all
  // of v; kNone if the rank has no element.
  ValueId shard_of(ValueId v, const ShardedParam& param) {
    const ShardedParam* its = params_.of(v);
    const ValueId all = its && *its->cuts != *param.cuts ? whole(v) : local(v);
    const Range r = range_of(param);
    if (r.size() == 0) return kNone;
    if (has_all(param) || to_.type(all) != from_.type(v)) return all;
    auto [at, fresh] = shards_.try_emplace({all, param.cuts}, kNone);
    if (fresh) {
      const ValueId flat = build::reshape(to_, all, {to_.type(all).elements()});
      at->second = build::slice(to_, flat, 0, r.begin, r.end);
    }
    return at->second;
  }

  // The whole tensor v, on all ranks.
  ValueId whole(ValueId v) {
    const ShardedParam* param = params_.of(v);
    if (!param || is_replicated(v)) return local(v);
    auto [at, fresh] = whole_.try_emplace(v, kNone);
    if (fresh) {
      const Type& type = from_.type(v);
      const ShardedTensor pieces{{shard_of(v, *param)}, cut_as(*param->cuts, type.elements())};
      const ValueId all = gather_together(to_, {pieces}, type.dtype,
                                          gather_axis(unit_of(*param).how, mesh_, rank_))[0];
      at->second = build::reshape(to_, all, type.dims);
    }
    return at->second;
  }

  using Reductions = std::map<size_t, const Op*>;  // by member of their unit

  // Emits reductions of shards of one unit, whose blocks' results are gathered by one exchange.
  void reduce_together(const Reductions& members, int32_t dtype) {
    std::vector<ShardedTensor> pieces;
    for (auto& [member, op] : members) {
      to_.set_site(op->site);
      const ShardedParam& param = *params_.of(op->in[0]);
      const bool each = cut_inside(*param.cuts);
      ShardedTensor sums{{}, {0}};
      for (size_t s = 0; s + 1 < param.cuts->size(); ++s) {
        const int64_t n = held_by(*param.cuts, static_cast<int>(s)).size();
        const int64_t blocks = (n + ORR_SUM_BLOCK - 1) / ORR_SUM_BLOCK;
        sums.cuts.push_back(sums.cuts.back() + (each ? blocks : n > 0));
      }
      if (const ValueId x = shard_of(op->in[0], param); x != kNone)
        sums.own = reduce_blocks(to_, *op, x, each, dtype);
      pieces.push_back(std::move(sums));
    }
    const ShardedParam& first = *params_.of(members.begin()->second->in[0]);
    const std::vector<ValueId> sums =
        gather_together(to_, pieces, dtype, gather_axis(unit_of(first).how, mesh_, rank_));
    size_t i = 0;
    for (auto& [member, op] : members) {
      to_.set_site(op->site);
      local_[op->out[0]] = combine_blocks(to_, *op, sums[i++]);
    }
  }

  // Gives states their new values. Those of replicated parameters are gathered, a unit at a time.
  void emit_updates() {
    to_.mutable_updates().clear();
    std::map<size_t, std::map<size_t, ValueId>> replicated;  // unit -> member -> this rank's shard
    for (auto& [state, next] : from_.updates()) {
      const ShardedParam* param = params_.of(state);
      const ValueId own = param ? shard_of(next, *param) : whole(next);
      if (is_replicated(state))
        replicated[param->unit][param->member] = own;
      else if (own != kNone)
        to_.update(state, own);
    }
    for (auto& [u, members] : replicated) update_replicated(units_[u], members);
  }

  // If all members of the unit are updated, the exchange may write straight into the states'
  // memory, which is one row (Program::keep_together).
  void update_replicated(const Unit& unit, const std::map<size_t, ValueId>& members) {
    std::vector<ShardedTensor> shards;
    to_.set_site(from_.value(unit.read[members.begin()->first]).site);
    for (auto& [m, own] : members) shards.push_back({{own}, unit.shards[m]});
    const bool all = members.size() == unit.read.size();
    const std::string row = all ? from_.value(unit.read[0]).state->name : "";
    const std::vector<ValueId> wholes =
        gather_together(to_, shards, from_.type(unit.read[0]).dtype,
                        gather_axis(unit.how, mesh_, rank_), {.awaited = true, .row = row});
    size_t i = 0;
    for (auto& [m, own] : members)
      to_.update(unit.read[m], build::reshape(to_, wholes[i++], from_.type(unit.read[m]).dims));
  }

  const Program& from_;
  const Mesh& mesh_;
  int rank_;
  std::vector<Unit> units_;
  ShardedParams params_;
  std::vector<Scatter> scatters_;
  Program to_;
  std::map<ValueId, Scatter*> scatter_of_;                     // by sum
  std::map<ValueId, ValueId> local_;                           // what `local` returns
  std::map<std::pair<ValueId, const Dims*>, ValueId> shards_;  // of values that are whole here
  std::map<ValueId, ValueId> whole_;                           // what `whole` has gathered
  std::map<std::pair<size_t, size_t>, int64_t> uses_;  // by unit and member: its totals so far
  std::vector<int> round_of_;                          // by op
  int last_round_ = 0;
};

}  // namespace

Program shard(const Program& p, const Mesh& mesh, int rank) { return Sharder(p, mesh, rank).run(); }

}  // namespace orrery
