// SPDX-License-Identifier: Apache-2.0
//
// The update is emitted in rounds: norms and the like are scalars of whole tensors, for which block
// sums are gathered once all that they need is there; what needs the scalar belongs to the next
// round. The blocks and the tree over them are those of a sum in one process (orrery/ops.h, SUMS).
#include "lower/shard.h"

#include <orrery/ops.h>
#include <orrery/strategy.h>

#include <algorithm>
#include <map>
#include <set>

#include "lower/blocks.h"
#include "lower/chains.h"
#include "lower/gather.h"
#include "lower/units.h"
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
  Sharder(const Program& p, const Spread& spread, int rank)
      : from_(p), spread_(spread), rank_(rank), units_(find_units(p, spread)), chains_(p, units_) {
    for (size_t u = 0; u < units_.size(); ++u)
      for (size_t m = 0; m < units_[u].read.size(); ++m) read_[units_[u].read[m]] = {u, m};
  }

  Program run() {
    to_ = from_;
    to_.mutable_ops().clear();
    cut_states();
    ParamGather gather(from_, to_, units_, spread_, rank_);
    held_ = gather.held();
    for (const Unit& unit : units_) keep_together(unit);
    gather.emit_early();
    to_.set_phase(Phase::update);
    find_rounds();
    for (int round = 0; round <= last_round_; ++round) emit_round(round);
    emit_updates();
    return std::move(to_);
  }

 private:
  void keep_together(const Unit& unit) {
    Program::Together row{{}, unit.how.axis};
    for (ValueId v : unit.read) row.states.push_back(whole(v));
    row.room = most_held(from_, unit);
    to_.keep_together(std::move(row));
  }

  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  const Unit& unit_of(const Chain& c) const { return units_[c.unit]; }
  Among among(const Chain& c) const { return orrery::among(unit_of(c).how, spread_, rank_); }

  // What shard `s` holds of a chain's tensors, and what this rank does.
  static Range held_by(const Dims& cuts, int s) { return {cuts[at(s)], cuts[at(s + 1)]}; }
  Range mine(const Chain& c) const {
    return held_by(*c.cuts, spread_.coordinate(unit_of(c).how.axis, rank_));
  }
  static bool is_all(const Range& r, const Dims& cuts) {
    return r.begin == 0 && r.end == cuts.back();
  }

  // Optimizer states become parts, and parameters that have copies; what forward reads is cut by
  // ParamGather.
  void cut_states() {
    std::set<ValueId> states;
    for (auto& [state, next] : from_.updates()) states.insert(state);
    for (size_t v = 0; v < from_.values().size(); ++v)
      if (from_.values()[v].state && !from_.values()[v].state->beside.empty())
        states.insert(static_cast<ValueId>(v));
    for (const Unit& unit : units_)
      if (unit.has_copies()) states.insert(unit.params.begin(), unit.params.end());
    for (ValueId state : states) {
      const Chain* c = chains_.of(state);
      // A chain of several parameters has one owner, who has all of tensors of any size.
      if (!c || is_read(state) || is_all(mine(*c), *c->cuts)) continue;
      cut_value(to_.mutable_value(state), mine(*c).begin, mine(*c).end);
    }
  }

  // Whether forward reads it: it is whole then, or gathered, and its new value travels.
  bool is_read(ValueId v) const { return read_.count(v) > 0; }
  // Whether every rank has all of what forward reads.
  bool is_replicated(ValueId v) const {
    return is_read(v) && units_[read_.at(v).first].how.what < ORR_SHARD_PARAM;
  }

  bool gathers(const Op& op) const {
    return chains_.reads_whole(op) &&
           std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return chains_.of(v); });
  }

  // Ops wait for the round in which their gathers are done; messages keep their order.
  void find_rounds() {
    int message = 0;
    std::vector<int> ready(from_.values().size(), 0);
    round_of_.assign(from_.ops().size(), 0);
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase != Phase::update) continue;
      for (ValueId v : op.in) round_of_[i] = std::max(round_of_[i], ready[at(v)]);
      if (is_exchange(op.kind))
        round_of_[i] = std::max(round_of_[i], message), message = round_of_[i] + gathers(op);
      for (ValueId v : op.out) ready[at(v)] = round_of_[i] + gathers(op);
      last_round_ = std::max(last_round_, round_of_[i]);
    }
  }

  void emit_round(int round) {
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase == Phase::update && round_of_[i] == round && !gathers(op)) emit(op);
    }
    reduce_round(round);
  }

  void emit(const Op& op) {
    to_.set_site(op.site);
    const Chain* c = chains_.of(op);
    if (!c || (op.kind != "total" && is_all(mine(*c), *c->cuts))) {
      append(op);
    } else if (op.kind == "total") {
      emit_total(op, *c);
    } else if (mine(*c).size() > 0) {
      emit_piece(op, *c);
    }
  }

  void append(const Op& op) {
    Op copy = op;
    copy.twin = kNone;
    for (ValueId& v : copy.in) v = whole(v);
    to_.append(std::move(copy));
  }

  // A tensor of which this rank has all; sums from replicas and parameters have other names.
  ValueId whole(ValueId v) const {
    if (auto found = pieces_.find(v); found != pieces_.end()) return found->second;
    auto found = held_.find(v);
    return found == held_.end() ? v : found->second;
  }

  // A sum over the batch of which every rank gets its piece. All ranks give their nodes of all of
  // it.
  void emit_total(const Op& op, const Chain& c) {
    const Unit& unit = unit_of(c);
    const Dims cuts = pieces_of(op.out[0], c);
    Dims begin, count;
    for (int r = 0; r < spread_.gradient_ranks(); ++r) {
      Range piece = held_by(cuts, piece_of(spread_, unit.how, r));
      begin.push_back(piece.begin), count.push_back(piece.size());
    }
    Op cut = op;
    cut.twin = kNone;
    cut.attrs["begin"] = begin, cut.attrs["count"] = count;
    cut.attrs["unit"] = static_cast<int64_t>(c.unit),
    cut.attrs["member"] = static_cast<int64_t>(c.member);
    cut.attrs["use"] = uses_[{c.unit, c.member}]++;
    cut.attrs["cause"] = unit.how.cause;
    cut.attrs["free"] = int64_t{unit.how.what >= ORR_SHARD_GRADIENT};
    int64_t own = count[at(spread_.coordinate(spread_.gradient_axis(), rank_))];
    if (own < cuts.back()) {
      cut.out = {to_.new_value({from_.type(op.out[0]).dtype, {own}}, Role::activation)};
      if (pieces_per_shard(spread_, unit.how) == 1 && own > 0) pieces_[op.out[0]] = cut.out[0];
    }
    ValueId out = cut.out[0];
    to_.append(std::move(cut));
    if (pieces_per_shard(spread_, unit.how) > 1) from_replicas(op.out[0], out, c);
  }

  // Chains of several parameters have one owner, whatever their sizes.
  Dims pieces_of(ValueId v, const Chain& c) const {
    return cut_as(unit_of(c).pieces[c.member], from_.type(v).elements());
  }
  static Dims cut_as(const Dims& cuts, int64_t n) {
    return n == cuts.back() ? cuts : cut_alike(cuts, n);
  }

  // The pieces of a shard, which its replicas own, on all of them.
  void from_replicas(ValueId original, ValueId own, const Chain& c) {
    const Unit& unit = unit_of(c);
    Range shard = mine(c);
    if (shard.size() == 0) return;
    const std::string outer = replicas_of(spread_, unit.how);
    int per = pieces_per_shard(spread_, unit.how),
        first = spread_.coordinate(unit.how.axis, rank_) * per;
    const Dims cuts = pieces_of(original, c);
    const Pieces pieces{{own}, {cuts.begin() + first, cuts.begin() + first + per + 1}};
    ValueId all = gather_together(to_, {pieces}, to_.type(own).dtype,
                                  {outer, unit.how.cause, spread_.coordinate(outer, rank_)})[0];
    if (is_all(shard, *c.cuts)) all = build::reshape(to_, all, from_.type(original).dims);
    pieces_[original] = all;
  }

  // An elementwise op on this rank's piece.
  void emit_piece(const Op& op, const Chain& c) {
    Range r = mine(c);
    Op cut = op;
    cut.twin = kNone;
    for (ValueId& v : cut.in)
      if (!from_.type(v).dims.empty()) v = piece(v, c);
    if (cut.attrs.count("dims")) cut.attrs["dims"] = Dims{r.size()};
    for (const orr_instr& i : op.expr.instrs)
      if (i.fn == ORR_FN_RAND) cut.expr.instrs[at(i.c)].imm += static_cast<double>(r.begin);
    for (ValueId& v : cut.out) {
      ValueId own = to_.new_value({from_.type(v).dtype, {r.size()}}, Role::activation);
      v = pieces_[v] = own;
    }
    to_.append(std::move(cut));
  }

  // This rank's piece of a tensor, flat; a view if the whole is here. REQUIRES: it has one.
  ValueId piece(ValueId v, const Chain& c) {
    if (auto found = pieces_.find(v); found != pieces_.end()) return found->second;
    const ValueId now = whole(v);
    const bool cut = to_.value(now).state && to_.type(now) != from_.type(v);
    return cut ? now : slice_of(now, c);
  }

  ValueId slice_of(ValueId all, const Chain& c) {
    auto [at, fresh] = slices_.try_emplace({all, c.cuts}, kNone);
    if (fresh) {
      const ValueId flat = build::reshape(to_, all, {to_.type(all).elements()});
      at->second = build::slice(to_, flat, 0, mine(c).begin, mine(c).end);
    }
    return at->second;
  }

  // This rank's part, by a chain, of any tensor, in whatever shape; kNone if it has none.
  ValueId part(ValueId v, const Chain& c) {
    const Chain* its = chains_.of(v);
    if (its && *its->cuts != *c.cuts) {
      const ValueId all = gathered(v, *its);
      if (mine(c).size() == 0) return kNone;
      return is_all(mine(c), *c.cuts) ? all : slice_of(all, c);
    }
    if (mine(c).size() == 0) return kNone;
    return is_all(mine(c), *c.cuts) ? whole(v) : piece(v, c);
  }

  struct Reduction {
    const Op* op;
    const Chain* chain;
  };

  // Those of a unit travel together, one for each of its parameters.
  void reduce_round(int round) {
    std::map<std::tuple<size_t, int32_t, int>, std::map<size_t, Reduction>> groups;
    std::map<std::pair<size_t, size_t>, int> nth;
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (op.phase != Phase::update || round_of_[i] != round || !gathers(op)) continue;
      if (!is_whole_reduce(from_, op)) {
        read_whole(op);
        continue;
      }
      const Chain* c = chains_.of(op.in[0]);
      int n = nth[{c->unit, c->member}]++;
      groups[{c->unit, partial_dtype(op, *c), n}][c->member] = {&op, c};
    }
    for (auto& [key, members] : groups) reduce_together(members);
  }

  // An op that reads more of its tensors than pieces that lie alike.
  void read_whole(const Op& op) {
    to_.set_site(op.site);
    Op copy = op;
    copy.twin = kNone;
    for (ValueId& v : copy.in) v = chains_.of(v) ? gathered(v, *chains_.of(v)) : whole(v);
    to_.append(std::move(copy));
  }

  // All of a chain's tensor, on all ranks.
  ValueId gathered(ValueId v, const Chain& c) {
    if (is_replicated(v)) return whole(v);
    auto [at, fresh] = gathered_.try_emplace(v, kNone);
    if (fresh) {
      const Type& type = from_.type(v);
      const Pieces pieces{{part(v, c)}, cut_as(*c.cuts, type.elements())};
      const ValueId all = gather_together(to_, {pieces}, type.dtype, among(c))[0];
      at->second = build::reshape(to_, all, type.dims);
    }
    return at->second;
  }

  // Block sums keep the accumulator's width; a tensor in one place is reduced there.
  int32_t partial_dtype(const Op& op, const Chain& c) const {
    int32_t dtype = from_.type(op.in[0]).dtype;
    bool narrow = dtype == ORR_BF16 || dtype == ORR_F16;
    return cut_inside(*c.cuts) && adds_up(op) && narrow ? int32_t{ORR_F32}
                                                        : from_.type(op.out[0]).dtype;
  }

  static int64_t partials_in(const Chain& c, const Range& r) {
    if (!cut_inside(*c.cuts)) return r.size() > 0;
    return (r.size() + ORR_SUM_BLOCK - 1) / ORR_SUM_BLOCK;
  }

  void reduce_together(const std::map<size_t, Reduction>& members) {
    const Reduction& first = members.begin()->second;
    std::vector<Pieces> pieces;
    for (auto& [member, r] : members) {
      to_.set_site(r.op->site);
      Pieces sums{{}, {0}};
      for (size_t s = 0; s + 1 < r.chain->cuts->size(); ++s)
        sums.cuts.push_back(sums.cuts.back() +
                            partials_in(*r.chain, held_by(*r.chain->cuts, static_cast<int>(s))));
      if (const ValueId x = part(r.op->in[0], *r.chain); x != kNone)
        sums.own = reduce_blocks(to_, *r.op, x, cut_inside(*r.chain->cuts),
                                 partial_dtype(*r.op, *r.chain));
      pieces.push_back(std::move(sums));
    }
    const std::vector<ValueId> each =
        gather_together(to_, pieces, partial_dtype(*first.op, *first.chain), among(*first.chain));
    size_t i = 0;
    for (auto& [member, r] : members) {
      to_.set_site(r.op->site);
      combine_blocks(to_, *r.op, each[i++]);
    }
  }

  void emit_updates() {
    to_.mutable_updates().clear();
    std::map<size_t, std::map<size_t, ValueId>> fresh;  // unit -> member -> own part
    for (auto& [state, next] : from_.updates()) {
      const Chain* c = chains_.of(state);
      if (!c) {
        to_.update(state, chains_.of(next) ? gathered(next, *chains_.of(next)) : whole(next));
        continue;
      }
      const ValueId own = part(next, *c);
      if (const auto read = read_.find(state); read != read_.end())
        fresh[read->second.first][read->second.second] = own;
      else if (own != kNone)
        to_.update(state, own);
    }
    for (auto& [u, members] : fresh) update_params(units_[u], members);
  }

  void update_params(const Unit& unit, const std::map<size_t, ValueId>& members) {
    if (unit.how.what >= ORR_SHARD_PARAM) {
      for (auto& [m, own] : members)
        if (own != kNone) to_.update(whole(unit.read[m]), own);
      return;
    }
    std::vector<Pieces> pieces;
    to_.set_site(from_.value(unit.read[members.begin()->first]).site);
    for (auto& [m, own] : members) pieces.push_back({{own}, unit.shards[m]});
    const bool all = members.size() == unit.read.size();
    const std::vector<ValueId> wholes = gather_together(
        to_, pieces, from_.type(unit.read[0]).dtype, orrery::among(unit.how, spread_, rank_),
        all ? from_.value(unit.read[0]).state->name : "");
    size_t i = 0;
    for (auto& [m, own] : members)
      to_.update(unit.read[m], build::reshape(to_, wholes[i++], from_.type(unit.read[m]).dims));
  }

  const Program& from_;
  const Spread& spread_;
  int rank_;
  std::vector<Unit> units_;
  Chains chains_;
  std::map<ValueId, std::pair<size_t, size_t>> read_;  // by forward: of which unit and member
  Program to_;
  std::map<ValueId, ValueId> held_;    // parameter in pieces -> what of it this rank holds
  std::map<ValueId, ValueId> pieces_;  // tensor of a chain -> this rank's piece
  std::map<std::pair<ValueId, const Dims*>, ValueId> slices_;  // of what all ranks have
  std::map<ValueId, ValueId> gathered_;  // tensor of a chain -> all of it, for the update
  std::map<std::pair<size_t, size_t>, int64_t> uses_;
  std::vector<int> round_of_;
  int last_round_ = 0;
};

}  // namespace

Program shard(const Program& p, const Spread& spread, int rank) {
  return Sharder(p, spread, rank).run();
}

}  // namespace orrery
