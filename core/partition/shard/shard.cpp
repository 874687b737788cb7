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
#include <iterator>
#include <map>
#include <tuple>

#include "partition/shard/chains.h"
#include "partition/shard/early.h"
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
        chains_(p, units_, mesh.gradient_axis()),
        scatters_(find_scatters(p, mesh, units_, chains_)) {
    for (Scatter& s : scatters_)
      for (auto& [member, sum] : s.sums) scatter_of_[sum] = &s;
  }

  Program run() {
    to_ = from_.without_ops();
    for (size_t v = 0; v < from_.values().size(); ++v)
      if (from_.values()[v].state) cut_state(static_cast<ValueId>(v));
    for (const Unit& unit : units_)
      to_.keep_together({unit.read, unit.how.axis, most_held(from_, unit)});
    emit_early(from_, mesh_, rank_, units_, scatters_, to_);
    to_.set_phase(Phase::update);
    find_rounds();
    for (int round = 0; round <= last_round_; ++round) emit_round(round);
    emit_updates();
    for (auto& [name, v] : to_.mutable_outputs()) v = everywhere(v);
    return std::move(to_);
  }

 private:
  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  const Unit& unit_of(const Chain& c) const { return units_[c.unit]; }

  // The elements of a chain's tensors that this rank holds.
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

  // Gathers values that lie in pieces as `unit.read` does.
  std::vector<ValueId> gathered(const Unit& unit, const std::vector<Pieces>& pieces,
                                const std::string& row = "") {
    return gather_together(to_, pieces, from_.type(unit.read[0]).dtype,
                           among(unit.how, mesh_, rank_), {.awaited = true, .row = row});
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

  // The value that stands for v in the update of this rank: its piece, where v lies in pieces.
  ValueId now(ValueId v) const {
    const auto found = now_.find(v);
    return found == now_.end() ? v : found->second;
  }

  // Emits a total of which every rank gets its piece only. All ranks give their tree nodes of the
  // whole tensor.
  void emit_total(const Op& op, const Chain& c) {
    if (const auto sent = scatter_of_.find(op.in[0]); sent != scatter_of_.end())
      return complete(op, c, *sent->second);
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

  // The total of a sum whose pieces are sent after each microbatch: this rank's piece of it.
  void complete(const Op& op, const Chain& c, Scatter& s) {
    if (mine(c).size() == 0) return;
    if (s.completed.empty()) complete_all(op, c, s);
    const ValueId own = s.completed.at(c.member);
    now_[op.out[0]] = has_all(c) ? build::reshape(to_, own, from_.type(op.out[0]).dims) : own;
  }

  void complete_all(const Op& op, const Chain& c, Scatter& s) {
    Op total;
    total.kind = "total", total.in = {s.piece}, total.site = op.site;
    total.out = {piece_of(op.out[0], to_.type(s.piece).elements(), c)};
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

  // Gathers a shard of a sum on all its replicas, of which each has one piece.
  void from_replicas(ValueId sum, const Chain& c) {
    const Unit& unit = unit_of(c);
    if (mine(c).size() == 0) return;
    const std::string outer = mesh_.replicas_of(unit.how.axis);
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
  std::vector<Scatter> scatters_;
  Program to_;
  std::map<ValueId, Scatter*> scatter_of_;  // by sum
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
