// SPDX-License-Identifier: Apache-2.0
//
// Shards training state in one rank's program (partition/passes.h). The update is emitted in
// rounds. A round ends with its reductions of whole tensors, such as norms: ranks gather the sums
// of blocks of their pieces, and ops that need the resulting scalar belong to the next round. The
// blocks and the tree over them are those of a sum in one process (orrery/ops.h, SUMS).
#include "partition/passes.h"

#include <orrery/ops.h>
#include <orrery/strategy.h>

#include <algorithm>
#include <map>
#include <set>

#include "partition/shard/chains.h"
#include "partition/shard/units.h"
#include "partition/shared/blocks.h"
#include "partition/shared/gather.h"
#include "program/build.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class Sharder {
 public:
  Sharder(const Program& p, const Mesh& mesh, int rank)
      : from_(p),
        mesh_(mesh),
        rank_(rank),
        units_(find_units(p, mesh)),
        chains_(p, units_, mesh.gradient_axis()) {}

  Program run() {
    to_ = from_.without_ops();
    for (size_t v = 0; v < from_.values().size(); ++v)
      if (from_.values()[v].state) cut_state(static_cast<ValueId>(v));
    for (const Unit& unit : units_)
      to_.keep_together({unit.read, unit.how.axis, most_held(from_, unit)});
    find_uses();
    emit_early();
    find_rounds();
    for (int round = 0; round <= last_round_; ++round) emit_round(round);
    emit_updates();
    for (auto& [name, v] : to_.mutable_outputs()) v = everywhere(v);
    return std::move(to_);
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  const Unit& unit_of(const Chain& c) const { return units_[c.unit]; }

  // The elements of a chain's tensors that shard `s` holds, and those that this rank holds.
  static Range held_by(const Dims& cuts, int s) { return {cuts[at(s)], cuts[at(s + 1)]}; }
  Range mine(const Chain& c) const {
    return held_by(*c.cuts, mesh_.coordinate(unit_of(c).how.axis, rank_));
  }
  bool has_all(const Chain& c) const { return mine(c).size() == c.cuts->back(); }

  // Whether every rank has the whole state, because forward reads it.
  bool is_replicated(ValueId v) const {
    const Chain* c = chains_.of(v);
    return c && !unit_of(*c).in_pieces() && unit_of(*c).read[c->member] == v;
  }

  void cut_state(ValueId state) {
    const Chain* c = chains_.of(state);
    if (!c || is_replicated(state) || has_all(*c)) return;
    Value& v = to_.mutable_value(state);
    const Range r = mine(*c);
    v.layout = v.layout.with(unit_of(*c).how.axis, unit_of(*c).lies());
    v.type.dims = {r.size()};
    if (r.size() > 0)
      v.part.begin = r.begin, v.part.end = r.end;
    else
      v.part = {{}, 0, 0};
  }

  // Finds where units that lie in pieces are gathered: in forward, and again in backward unless
  // they are kept. A unit is gathered before the first op that reads the unit `ahead` places before
  // it.
  void find_uses() {
    std::map<ValueId, size_t> unit_of;
    for (size_t u = 0; u < units_.size(); ++u)
      for (ValueId v : units_[u].read)
        if (units_[u].in_pieces()) unit_of[v] = u;
    std::set<std::pair<Phase, size_t>> seen;
    std::map<Phase, std::vector<OpId>> first;  // the first op that reads each unit, in their order
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      std::set<size_t> read;
      for (ValueId v : op.in)
        if (const auto unit = unit_of.find(v); unit != unit_of.end()) read.insert(unit->second);
      for (size_t unit : read) {
        if (op.phase == Phase::update || !seen.insert({op.phase, unit}).second) continue;
        std::vector<OpId>& uses = first[op.phase];
        uses.push_back(static_cast<OpId>(i));
        const Sharded& how = units_[unit].how;
        const size_t ahead = std::min(uses.size() - 1, static_cast<size_t>(how.ahead));
        if (op.phase == Phase::forward || !how.keep || !seen.count({Phase::forward, unit}))
          gathered_before_[uses[uses.size() - 1 - ahead]].push_back(unit);
      }
    }
  }

  // Emits forward and backward.
  void emit_early() {
    std::vector<OpId> moved(from_.ops().size(), kNone);
    for (size_t i = 0; i < moved.size(); ++i) {
      Op op = from_.ops()[i];
      if (op.phase == Phase::update) continue;
      to_.set_phase(op.phase);
      for (size_t unit : gathered_before_[static_cast<OpId>(i)]) gather(units_[unit]);
      if (op.twin != kNone) op.twin = moved[at(op.twin)];
      for (ValueId& v : op.in) v = now(v);
      moved[i] = static_cast<OpId>(to_.ops().size());
      to_.append(std::move(op));
    }
    now_.clear();  // the update works on pieces
    to_.set_phase(Phase::update);
  }

  void gather(const Unit& unit) {
    to_.set_site(from_.value(unit.read[0]).site);
    std::vector<Pieces> pieces;
    for (size_t m = 0; m < unit.read.size(); ++m)
      pieces.push_back({{unit.read[m]}, unit.shards[m]});
    const std::vector<ValueId> wholes = gathered(unit, pieces);
    for (size_t m = 0; m < unit.read.size(); ++m)
      now_[unit.read[m]] = build::reshape(to_, wholes[m], from_.type(unit.read[m]).dims);
  }

  // Gathers values that lie in pieces as `unit.read` does.
  std::vector<ValueId> gathered(const Unit& unit, const std::vector<Pieces>& pieces,
                                const std::string& row = "") {
    return gather_together(to_, pieces, from_.type(unit.read[0]).dtype,
                           among(unit.how, mesh_, rank_), row);
  }

  // An op belongs to the round after the gathers that it needs. Messages keep their order.
  void find_rounds() {
    int message = 0;
    std::vector<int> ready(from_.values().size(), 0);
    round_of_.assign(from_.ops().size(), 0);
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase != Phase::update) continue;
      for (ValueId v : op.in) round_of_[i] = std::max(round_of_[i], ready[at(v)]);
      const int done = chains_.gathers(op);
      if (is_exchange(op.kind))
        round_of_[i] = std::max(round_of_[i], message), message = round_of_[i] + done;
      for (ValueId v : op.out) ready[at(v)] = round_of_[i] + done;
      last_round_ = std::max(last_round_, round_of_[i]);
    }
  }

  // Reductions of a round come last. Those of a unit, one for each of its parameters, travel
  // together.
  void emit_round(int round) {
    std::vector<const Op*> last;
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase != Phase::update || round_of_[i] != round) continue;
      if (chains_.gathers(op))
        last.push_back(&op);
      else
        emit(op);
    }
    std::map<std::tuple<size_t, int32_t, int>, Reductions> groups;
    std::map<std::pair<size_t, size_t>, int> nth;
    for (const Op* op : last) {
      if (!is_whole_reduce(from_, *op)) {
        append(*op);
        continue;
      }
      const Chain& c = *chains_.of(op->in[0]);
      const int n = nth[{c.unit, c.member}]++;
      const int32_t dtype =  // a tensor that one rank holds whole is reduced there
          cut_inside(*c.cuts) ? block_dtype(from_, *op) : from_.type(op->out[0]).dtype;
      groups[{c.unit, dtype, n}][c.member] = op;
    }
    for (auto& [key, members] : groups) reduce_together(members, std::get<1>(key));
  }

  void emit(const Op& op) {
    to_.set_site(op.site);
    const Chain* c = chains_.of(op);
    if (c && op.kind == "total")
      emit_total(op, *c);
    else if (!c || has_all(*c))
      append(op);
    else if (mine(*c).size() > 0)
      emit_piece(op, *c);
  }

  // Appends an op on tensors that this rank has whole, or that are gathered for it.
  void append(const Op& op) {
    to_.set_site(op.site);
    Op copy = op;
    copy.twin = kNone;
    for (ValueId& v : copy.in) v = chains_.gathers(op) ? everywhere(v) : now(v);
    to_.append(std::move(copy));
  }

  // The cuts of a tensor of n elements in a chain with these cuts. If n differs, the chain has one
  // owner, which has the whole tensor.
  static Dims cut_as(const Dims& cuts, int64_t n) {
    return n == cuts.back() ? cuts : cut_alike(cuts, n);
  }

  // The value that stands for v on this rank: the whole that was gathered before, or in the update
  // the rank's piece.
  ValueId now(ValueId v) const {
    const auto found = now_.find(v);
    return found == now_.end() ? v : found->second;
  }

  // Emits a total of which every rank gets its piece only. All ranks give their tree nodes of the
  // whole tensor.
  void emit_total(const Op& op, const Chain& c) {
    const Unit& unit = unit_of(c);
    const Dims cuts = cut_as(unit.pieces[c.member], from_.type(op.out[0]).elements());
    Dims begin, count;
    for (int r = 0; r < mesh_.gradient_ranks(); ++r) {
      Range piece = held_by(cuts, unit.piece_of[at(r)]);
      begin.push_back(piece.begin), count.push_back(piece.size());
    }
    Op cut = op;
    cut.twin = kNone;
    cut.attrs.set("begin", begin), cut.attrs.set("count", count);
    cut.attrs.set("unit", static_cast<int64_t>(c.unit)),
        cut.attrs.set("member", static_cast<int64_t>(c.member));
    cut.attrs.set("use", uses_[{c.unit, c.member}]++);
    cut.attrs.set("origin", unit.how.origin);
    cut.attrs.set("free", int64_t{unit.how.what >= ORR_SHARD_GRADIENT});
    const int64_t own = count[at(mesh_.coordinate(mesh_.gradient_axis(), rank_))];
    if (own < cuts.back()) cut.out = {piece_of(op.out[0], own, c)};
    const ValueId out = cut.out[0];
    to_.append(std::move(cut));
    now_[op.out[0]] = out;
    if (pieces_per_shard(mesh_, unit.how) > 1) from_replicas(op.out[0], c);
  }

  // Gathers a shard of a sum on all its replicas, of which each has one piece.
  void from_replicas(ValueId sum, const Chain& c) {
    const Unit& unit = unit_of(c);
    if (mine(c).size() == 0) return;
    const std::string outer = replicas_of(mesh_, unit.how);
    const int per = pieces_per_shard(mesh_, unit.how),
              first = mesh_.coordinate(unit.how.axis, rank_) * per;
    const Type& type = from_.type(sum);
    const Dims cuts = cut_as(unit.pieces[c.member], type.elements());
    const Dims shard(cuts.begin() + first, cuts.begin() + first + per + 1);
    ValueId all = gather_together(to_, {{{now(sum)}, shard}}, type.dtype,
                                  {outer, unit.how.origin, mesh_.coordinate(outer, rank_)})[0];
    now_[sum] = has_all(c) ? build::reshape(to_, all, type.dims) : all;
  }

  // Emits an elementwise op on this rank's piece.
  void emit_piece(const Op& op, const Chain& c) {
    const Range r = mine(c);
    Op cut = op;
    cut.twin = kNone;
    for (ValueId& v : cut.in) v = from_.type(v).dims.empty() ? now(v) : part(v, c);
    if (cut.attrs.has("dims")) cut.attrs.set("dims", Dims{r.size()});
    for (const orr_instr& i : op.expr.instrs)
      if (i.fn == ORR_FN_RAND) cut.expr.instrs[at(i.c)].imm += static_cast<double>(r.begin);
    for (ValueId& v : cut.out) v = now_[v] = piece_of(v, r.size(), c);
    to_.append(std::move(cut));
  }

  // A new value: a piece of v, of so many elements.
  ValueId piece_of(ValueId v, int64_t elements, const Chain& c) {
    const ValueId piece = to_.new_value({from_.type(v).dtype, {elements}}, Role::activation);
    const Layout layout = from_.value(v).layout.with_batch(Batch::none).with_varying({});
    to_.mutable_value(piece).layout = layout.with(unit_of(c).how.axis, unit_of(c).lies());
    return piece;
  }

  // This rank's part of the tensor v, as chain `c` is cut: flat, or in v's shape if it is all of v;
  // kNone if the rank has no element.
  ValueId part(ValueId v, const Chain& c) {
    const Chain* its = chains_.of(v);
    const ValueId all = its && *its->cuts != *c.cuts ? everywhere(v) : now(v);
    const Range r = mine(c);
    if (r.size() == 0) return kNone;
    if (has_all(c) || to_.type(all) != from_.type(v)) return all;
    auto [at, fresh] = parts_.try_emplace({all, c.cuts}, kNone);
    if (fresh) {
      const ValueId flat = build::reshape(to_, all, {to_.type(all).elements()});
      at->second = build::slice(to_, flat, 0, r.begin, r.end);
    }
    return at->second;
  }

  // The whole tensor v, on all ranks.
  ValueId everywhere(ValueId v) {
    const Chain* c = chains_.of(v);
    if (!c || is_replicated(v)) return now(v);
    auto [at, fresh] = everywhere_.try_emplace(v, kNone);
    if (fresh) {
      const Type& type = from_.type(v);
      const Pieces pieces{{part(v, *c)}, cut_as(*c->cuts, type.elements())};
      const ValueId all =
          gather_together(to_, {pieces}, type.dtype, among(unit_of(*c).how, mesh_, rank_))[0];
      at->second = build::reshape(to_, all, type.dims);
    }
    return at->second;
  }

  using Reductions = std::map<size_t, const Op*>;  // by member of their unit

  void reduce_together(const Reductions& members, int32_t dtype) {
    std::vector<Pieces> pieces;
    for (auto& [member, op] : members) {
      to_.set_site(op->site);
      const Chain& c = *chains_.of(op->in[0]);
      const bool each = cut_inside(*c.cuts);
      Pieces sums{{}, {0}};
      for (size_t s = 0; s + 1 < c.cuts->size(); ++s) {
        const int64_t n = held_by(*c.cuts, static_cast<int>(s)).size();
        const int64_t blocks = (n + ORR_SUM_BLOCK - 1) / ORR_SUM_BLOCK;
        sums.cuts.push_back(sums.cuts.back() + (each ? blocks : n > 0));
      }
      if (const ValueId x = part(op->in[0], c); x != kNone)
        sums.own = reduce_blocks(to_, *op, x, each, dtype);
      pieces.push_back(std::move(sums));
    }
    const Chain& first = *chains_.of(members.begin()->second->in[0]);
    const std::vector<ValueId> sums =
        gather_together(to_, pieces, dtype, among(unit_of(first).how, mesh_, rank_));
    size_t i = 0;
    for (auto& [member, op] : members) {
      to_.set_site(op->site);
      now_[op->out[0]] = combine_blocks(to_, *op, sums[i++]);
    }
  }

  void emit_updates() {
    to_.mutable_updates().clear();
    std::map<size_t, std::map<size_t, ValueId>> travelling;  // unit -> member -> own part
    for (auto& [state, next] : from_.updates()) {
      const Chain* c = chains_.of(state);
      const ValueId own = c ? part(next, *c) : everywhere(next);
      if (is_replicated(state))
        travelling[c->unit][c->member] = own;
      else if (own != kNone)
        to_.update(state, own);
    }
    for (auto& [u, members] : travelling) update_replicated(units_[u], members);
  }

  void update_replicated(const Unit& unit, const std::map<size_t, ValueId>& members) {
    std::vector<Pieces> pieces;
    to_.set_site(from_.value(unit.read[members.begin()->first]).site);
    for (auto& [m, own] : members) pieces.push_back({{own}, unit.shards[m]});
    const bool all = members.size() == unit.read.size();
    const std::vector<ValueId> wholes =
        gathered(unit, pieces, all ? from_.value(unit.read[0]).state->name : "");
    size_t i = 0;
    for (auto& [m, own] : members)
      to_.update(unit.read[m], build::reshape(to_, wholes[i++], from_.type(unit.read[m]).dims));
  }

  const Program& from_;
  const Mesh& mesh_;
  int rank_;
  std::vector<Unit> units_;
  Chains chains_;
  Program to_;
  std::map<OpId, std::vector<size_t>> gathered_before_;  // units, by op
  std::map<ValueId, ValueId> now_;
  std::map<std::pair<ValueId, const Dims*>, ValueId> parts_;  // parts of values that are whole
  std::map<ValueId, ValueId> everywhere_;  // tensor of a chain -> all of it, for the update
  std::map<std::pair<size_t, size_t>, int64_t> uses_;
  std::vector<int> round_of_;
  int last_round_ = 0;
};

}  // namespace

Program shard(const Program& p, const Mesh& mesh, int rank) { return Sharder(p, mesh, rank).run(); }

}  // namespace orrery
