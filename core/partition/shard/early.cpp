// SPDX-License-Identifier: Apache-2.0
#include "partition/shard/early.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "partition/shard/unshard.h"
#include "partition/shared/gather.h"
#include "program/build.h"
#include "program/op.h"
#include "program/rewrite.h"

namespace orrery {
namespace {

size_t at(int32_t i) { return static_cast<size_t>(i); }

// One gathering of a unit, and what reads it: the ops of a phase. A gathering that is repeated for
// each microbatch serves one chunk of the pipeline; others serve all (`stage` is 0).
struct Use {
  Phase phase;
  bool each;  // repeated for each microbatch
  int32_t stage;
  size_t unit;
  auto operator<=>(const Use&) const = default;
};

class Emitter {
 public:
  Emitter(const Program& from, const Mesh& mesh, int rank, const std::vector<Unit>& units,
          std::vector<Scatter>& scatters, Program& to)
      : from_(from),
        mesh_(mesh),
        rank_(rank),
        units_(units),
        once_(needed_once(from)),
        unshard_(from, mesh, rank, units, once_),
        to_(to) {
    for (size_t u = 0; u < units.size(); ++u)
      for (ValueId v : units[u].read)
        if (units[u].in_pieces()) unit_read_[v] = u;
    for (Scatter& s : scatters) after_[s.ready].push_back(&s);
  }

  void run() {
    find_uses();
    std::vector<OpId> moved(from_.ops().size(), kNone);
    for (size_t i = 0; i < moved.size(); ++i) {
      Op op = from_.ops()[i];
      if (op.phase == Phase::update) continue;
      to_.set_phase(op.phase);
      to_.set_stage(op.stage);
      if (unshard_.takes(static_cast<OpId>(i))) {
        unshard_.emit(static_cast<OpId>(i), to_);
        continue;
      }
      for (const Use& use : before_[static_cast<OpId>(i)]) gather(use);
      if (op.twin != kNone) op.twin = moved[at(op.twin)];
      for (ValueId& v : op.in)
        v = unshard_.read_by(static_cast<OpId>(i), whole_for(static_cast<OpId>(i), v));
      moved[i] = static_cast<OpId>(to_.ops().size());
      to_.append(std::move(op));
      for (Scatter* s : after_[static_cast<OpId>(i)]) scatter(*s);
    }
    to_.set_stage(0);
  }

 private:
  Use use_of(OpId op, size_t unit) const {
    const Op& reader = from_.ops()[at(op)];
    const bool each = mesh_.schedule.one_by_one && units_[unit].how.each && !once_[at(op)];
    return {reader.phase, each, each ? reader.stage : 0, unit};
  }

  // Finds where units are gathered whose parameters ops read as they are, not through `unshard`:
  // before the first such op of each phase.
  void find_uses() {
    std::set<Use> seen;
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (unshard_.takes(static_cast<OpId>(i))) continue;
      std::set<size_t> read;
      for (ValueId v : op.in)
        if (const auto unit = unit_read_.find(v); unit != unit_read_.end())
          read.insert(unit->second);
      for (size_t unit : read) {
        const Use use = use_of(static_cast<OpId>(i), unit);
        if (op.phase != Phase::update && seen.insert(use).second)
          before_[static_cast<OpId>(i)].push_back(use);
      }
    }
  }

  // What stands for v where this op of forward or backward reads it.
  ValueId whole_for(OpId op, ValueId v) const {
    const auto unit = unit_read_.find(v);
    if (unit == unit_read_.end()) return v;
    const Use use = use_of(op, unit->second);
    return whole_.at({v, use.each, use.stage});
  }

  void gather(const Use& use) {
    const Unit& unit = units_[use.unit];
    to_.set_site(from_.value(unit.read[0]).site);
    std::vector<ShardedTensor> pieces;
    for (size_t m = 0; m < unit.read.size(); ++m)
      pieces.push_back({{unit.read[m]}, unit.shards[m]});
    const std::vector<ValueId> wholes =
        gather_together(to_, pieces, from_.type(unit.read[0]).dtype,
                        gather_axis(unit.how, mesh_, rank_), {.awaited = true, .each = use.each});
    for (size_t m = 0; m < unit.read.size(); ++m)
      whole_[{unit.read[m], use.each, use.stage}] =
          build::reshape(to_, wholes[m], from_.type(unit.read[m]).dims);
  }

  // Emits the reduce-scatter of this microbatch's sums.
  void scatter(Scatter& s) {
    const Unit& unit = units_[s.unit];
    to_.set_site(from_.value(unit.read[s.sums.begin()->first]).site);
    const int me = mesh_.coordinate(unit.how.axis, rank_);
    Dims counts(unit.shards[0].size() - 1, 0);
    std::vector<ValueId> flat;
    for (auto& [member, sum] : s.sums) {
      const Dims cuts = cut_as(unit.shards[member], from_.type(sum).elements());
      for (size_t c = 0; c < counts.size(); ++c) counts[c] += cuts[c + 1] - cuts[c];
      s.own.push_back(held_by(cuts, me).size());
      flat.push_back(local_sum("reshape", {{"dims", Dims{cuts.back()}}}, {sum}, cuts.back()));
    }
    const int32_t dtype = from_.type(s.sums.begin()->second).dtype;
    const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t{0});
    if (flat.size() > 1) flat = {local_sum("concat", {{"dim", int64_t{0}}}, flat, all)};
    Op op;
    op.kind = "reduce_scatter", op.in = flat;
    op.attrs = {{"axis", unit.how.axis},
                {"origin", unit.how.origin},
                {"counts", counts},
                {"me", int64_t{me}}};
    op.set_exchange({.awaited = true, .each = true});
    s.piece = append_op(to_, std::move(op), {dtype, {counts[at(me)]}});
    Value& piece = to_.mutable_value(s.piece);
    piece.layout = Layout().with_batch(Batch::partial).with(unit.how.axis, unit.lies());
  }

  // A value of n elements that is a sum over this rank's microbatch.
  ValueId local_sum(const char* kind, const Attrs& attrs, const std::vector<ValueId>& in,
                    int64_t n) {
    const ValueId v = append_op(to_, kind, attrs, in, {to_.type(in[0]).dtype, {n}});
    to_.mutable_value(v).set_batch(Batch::partial);
    return v;
  }

  const Program& from_;
  const Mesh& mesh_;
  int rank_;
  const std::vector<Unit>& units_;
  const std::vector<bool> once_;  // by op (needed_once)
  Unshard unshard_;               // what the program itself gathers
  Program& to_;
  std::map<ValueId, size_t> unit_read_;          // units in pieces, by what forward reads
  std::map<OpId, std::vector<Use>> before_;      // gatherings, by op
  std::map<OpId, std::vector<Scatter*>> after_;  // by op
  // By what is gathered, Use::each and Use::stage.
  std::map<std::tuple<ValueId, bool, int32_t>, ValueId> whole_;
};

}  // namespace

void emit_early(const Program& from, const Mesh& mesh, int rank, const std::vector<Unit>& units,
                std::vector<Scatter>& scatters, Program& to) {
  Emitter(from, mesh, rank, units, scatters, to).run();
}

}  // namespace orrery
