// SPDX-License-Identifier: Apache-2.0
//
// One coordinate's program. Forward and backward follow Op::stage. In the update, an op of tensors runs
// wherever its result is needed, with the same bits everywhere; a sum that makes a scalar of a tensor
// (the norm of a gradient) runs once, where the tensor is, and the scalar travels.
#include <algorithm>
#include <boost/dynamic_bitset.hpp>
#include <map>
#include <tuple>

#include "base/error.h"
#include "lower/stage.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

using Ranks = boost::dynamic_bitset<>;  // coordinates on the pipeline axis

class Splitter {
 public:
  Splitter(const Program& p, const Spread& spread, int me)
      : from_(p), spread_(spread), me_(static_cast<size_t>(me)),
        everyone_(static_cast<size_t>(spread.size_of(spread.pipe_axis))), nobody_(everyone_) {
    everyone_.set();
    run_at_.assign(p.ops().size(), nobody_);
    needed_.assign(p.values().size(), nobody_);
    held_back_.assign(p.values().size(), false);
    for (size_t v = 0; v < p.values().size(); ++v)
      if (p.values()[v].state) homes_[static_cast<ValueId>(v)] = nobody_;
  }

  StageShare run() {
    find_early();
    settle_update();
    for (auto& [state, next] : from_.updates())
      if (homes_[state].none()) homes_[state] = only(0);  // nobody reads it
    settle_update();
    place_scalars();
    find_readers();
    to_ = from_.without_ops();
    for (size_t i = 0; i < from_.ops().size(); ++i) emit(i);
    flush();
    drop_foreign();
    StageShare share{std::move(to_), {}};
    for (auto& [v, ranks] : homes_)
      if (ranks.count() > 1) share.held_twice.insert(value(v).name);
    return share;
  }

 private:
  const Value& value(ValueId v) const { return from_.value(v); }
  bool scalar(ValueId v) const { return value(v).type.dims.empty(); }
  bool all_scalars(const Op& op) const {
    return std::all_of(op.out.begin(), op.out.end(), [&](ValueId v) { return scalar(v); });
  }
  size_t at(const Op& op) const { return static_cast<size_t>(spread_.chunk_at[static_cast<size_t>(op.stage)]); }
  Ranks only(size_t rank) const {
    Ranks one = nobody_;
    one.set(rank);
    return one;
  }
  static bool early(const Op& op) { return op.phase != Phase::update; }
  // Ops that wait for all microbatches, whatever phase wrote them (localize runs them late as well).
  bool is_late(size_t i) const { return late_[i]; }

  void find_early() {
    late_.resize(from_.ops().size());
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      late_[i] = !early(op) || op.kind == "total" || op.kind == "batch_mean";
      for (ValueId v : op.in) {
        OpId maker = value(v).producer;
        late_[i] = late_[i] || value(v).batch == Batch::partial || (maker != kNone && late_[static_cast<size_t>(maker)]);
      }
      if (late_[i]) {  // sums over the batch stay where they are made until they are whole
        if (const ValueId* sum = partial_input(op)) run_at_[i] = available(*sum);
        continue;
      }
      run_at_[i] = only(at(op));
      for (ValueId v : op.in)
        if (value(v).state) homes_[v].set(at(op));
    }
  }

  const ValueId* partial_input(const Op& op) const {
    for (const ValueId& v : op.in)
      if (value(v).batch == Batch::partial) return &v;
    return nullptr;
  }

  // What is there without the update: early results, inputs, states.
  Ranks available(ValueId v) const {
    OpId maker = value(v).producer;
    if (maker != kNone) return run_at_[static_cast<size_t>(maker)];
    if (!value(v).state) return everyone_;
    auto home = homes_.find(v);
    return home == homes_.end() ? nobody_ : home->second;
  }

  void need(ValueId v, const Ranks& ranks) {
    needed_[static_cast<size_t>(v)] |= ranks;
    if (value(v).state) homes_[v] |= ranks;
  }

  // What an update reads has a home where it is made; that may be where more is updated.
  void settle_update() {
    for (size_t before = SIZE_MAX, now = 0; before != now;) {
      before = now, now = 0;
      place_update();
      for (auto& [v, ranks] : homes_) now += ranks.count();
    }
  }

  // Tensors of the update, backwards from the states that they become.
  void place_update() {
    for (auto& [state, next] : from_.updates()) need(next, homes_[state]);
    for (size_t i = from_.ops().size(); i-- > 0;) {
      const Op& op = from_.ops()[i];
      if (!is_late(i) || partial_input(op) || all_scalars(op)) continue;
      for (ValueId v : op.out) run_at_[i] |= needed_[static_cast<size_t>(v)];
      for (ValueId v : op.in)
        if (!scalar(v)) need(v, run_at_[i]);
    }
  }

  // Scalars: made where their tensors are, or by everyone out of other scalars.
  void place_scalars() {
    for (auto& [name, v] : from_.outputs()) need(v, everyone_);
    for (size_t i = 0; i < from_.ops().size(); ++i) {
      const Op& op = from_.ops()[i];
      if (!is_late(i) || partial_input(op) || !all_scalars(op)) continue;
      const ValueId* tensor = nullptr;
      for (const ValueId& v : op.in)
        if (!scalar(v)) tensor = &v;
      run_at_[i] = everyone_;
      if (!tensor) continue;
      Ranks there = available(*tensor);
      if (there.none()) {
        there = only(0);  // a tensor for this alone
        need_chain(*tensor, there);
      }
      run_at_[i] = only(there.find_first());
    }
  }

  // Computes v, and what it is made of, on these ranks as well.
  void need_chain(ValueId v, const Ranks& ranks) {
    need(v, ranks);
    OpId maker = value(v).producer;
    if (maker == kNone || !is_late(static_cast<size_t>(maker)) || partial_input(from_.ops()[static_cast<size_t>(maker)])) return;
    run_at_[static_cast<size_t>(maker)] |= ranks;
    for (ValueId in : from_.ops()[static_cast<size_t>(maker)].in) need_chain(in, ranks);
  }

  void find_readers() {
    for (size_t i = 0; i < from_.ops().size(); ++i)
      for (ValueId v : from_.ops()[i].in) {
        needed_[static_cast<size_t>(v)] |= run_at_[i];
        if (value(v).state) homes_[v] |= run_at_[i];
        readers_[v].push_back(i);
      }
  }

  // Ops of scalars alone wait, with the messages that they need, until a tensor needs one of them.
  void emit(size_t i) {
    const Op& op = from_.ops()[i];
    if (is_late(i) && !partial_input(op) && all_scalars(op) && run_at_[i] == everyone_) {
      delayed_.push_back(i);
      for (ValueId v : op.out) held_back_[static_cast<size_t>(v)] = true;
      return;
    }
    if (reads_waiting(op)) flush();
    emit_now(i);
  }

  void emit_now(size_t i) {
    const Op& op = from_.ops()[i];
    bool mine = run_at_[i].test(me_);
    if (mine) {
      Op copy = op;
      if (is_late(i)) copy.stage = 0;
      append(std::move(copy));
    }
    for (ValueId v : op.out) {
      if (run_at_[i].none()) continue;
      size_t source = run_at_[i].find_first();
      Ranks away = needed_[static_cast<size_t>(v)] - run_at_[i];
      bool together = is_late(i) && scalar(v);
      if (together && away.any()) held_back_[static_cast<size_t>(v)] = true;
      if (source != me_) away &= only(me_);  // the others are not our concern
      for (size_t there = away.find_first(); there != Ranks::npos; there = away.find_next(there)) {
        if (together) waiting_[{source, there, value(v).type.dtype}].push_back({i, v});
        else if (source == me_) send(i, v, static_cast<int>(there));
        else receive(i, v, static_cast<int>(source));
      }
    }
  }

  // Keeps producer links right while ops are left out.
  void append(Op op) {
    op.twin = kNone;
    to_.append(std::move(op));
  }

  Op message(size_t i, ValueId v, const char* kind, int peer) const {
    const Op& op = from_.ops()[i];
    Op m;
    m.kind = kind, m.phase = is_late(i) ? Phase::update : op.phase, m.site = op.site;
    m.stage = is_late(i) ? 0 : op.stage;
    m.attrs = {{"axis", spread_.pipe_axis}, {"cause", spread_.scheduler},
               {"peer", int64_t{peer}}, {"tag", int64_t{v}},
               {"from_chunk", int64_t{op.stage}}, {"from_phase", static_cast<int64_t>(m.phase)}};
    return m;
  }

  void send(size_t i, ValueId v, int peer) {
    Op m = message(i, v, "send", peer);
    m.in = {v};
    append(std::move(m));
  }

  // Scalars of the update (norms) wait for one another and travel together, until someone reads one.
  struct Waiting {
    size_t maker;
    ValueId v;
  };
  using Route = std::tuple<size_t, size_t, int32_t>;  // from, to, dtype

  bool reads_waiting(const Op& op) const {
    return std::any_of(op.in.begin(), op.in.end(), [&](ValueId v) { return held_back_[static_cast<size_t>(v)]; });
  }

  void flush() {
    for (auto& [route, scalars] : waiting_) {
      auto [source, there, dtype] = route;
      move_together(scalars, dtype, static_cast<int>(source == me_ ? there : source), source == me_);
    }
    waiting_.clear();
    std::fill(held_back_.begin(), held_back_.end(), false);
    std::vector<size_t> now = std::move(delayed_);
    delayed_.clear();
    for (size_t i : now) emit_now(i);
  }

  void move_together(const std::vector<Waiting>& scalars, int32_t dtype, int peer, bool away) {
    int64_t n = static_cast<int64_t>(scalars.size());
    Op all = message(scalars[0].maker, scalars[0].v, away ? "send" : "recv", peer);
    all.attrs["moves_scalars"] = int64_t{1};  // no part of any tensor's update (lower/chains.h)
    std::vector<ValueId> parts;
    for (size_t k = 0; k < scalars.size(); ++k) parts.push_back(to_.new_value({dtype, {1}}, Role::activation));
    ValueId row = to_.new_value({dtype, {n}}, Role::activation);
    auto add = [&](const char* kind, const Attrs& attrs, std::vector<ValueId> in, std::vector<ValueId> out) {
      Op op;
      op.kind = kind, op.attrs = attrs, op.in = std::move(in), op.out = std::move(out);
      op.attrs["moves_scalars"] = int64_t{1};
      op.phase = Phase::update, op.site = all.site;
      append(std::move(op));
    };
    auto shape = [&](ValueId from, ValueId to) { add("reshape", {{"dims", to_.type(to).dims}}, {from}, {to}); };
    if (away) {
      for (size_t k = 0; k < scalars.size(); ++k) shape(scalars[k].v, parts[k]);
      add("concat", {{"dim", int64_t{0}}}, parts, {row});
      all.in = {row};
      return append(std::move(all));
    }
    all.attrs["dtype"] = int64_t{dtype};
    all.attrs["dims"] = Dims{n};
    all.out = {row};
    append(std::move(all));
    add("split", {{"dim", int64_t{0}}, {"sizes", Dims(static_cast<size_t>(n), 1)}}, {row}, parts);
    for (size_t k = 0; k < scalars.size(); ++k) shape(parts[k], scalars[k].v);
  }

  // Where the first of this rank's chunks needs it: forward in order, backward in reverse.
  void receive(size_t i, ValueId v, int peer) {
    Op m = message(i, v, "recv", peer);
    m.attrs["dtype"] = int64_t{value(v).type.dtype};
    m.attrs["dims"] = value(v).type.dims;
    m.out = {v};
    if (!is_late(i)) {
      int forward = INT32_MAX, backward = -1, made = from_.ops()[i].stage;
      for (size_t r : readers_[v]) {
        const Op& reader = from_.ops()[r];
        if (is_late(r) || !run_at_[r].test(me_)) continue;
        if (reader.phase == Phase::forward || reader.stage > made) forward = std::min(forward, reader.stage);
        else backward = std::max(backward, reader.stage);
      }
      bool ahead = from_.ops()[i].phase == Phase::forward && forward != INT32_MAX;
      m.phase = ahead ? Phase::forward : Phase::backward;
      m.stage = ahead ? forward : std::max(backward, 0);
    }
    append(std::move(m));
  }

  void drop_foreign() {
    std::erase_if(to_.mutable_updates(), [&](auto& update) { return !homes_[update.first].test(me_); });
    for (auto& [v, ranks] : homes_)
      if (ranks.any() && !ranks.test(me_)) to_.mutable_value(v).part = {kNone, {}, 0, 0};  // nothing
  }

  const Program& from_;
  const Spread& spread_;
  size_t me_;
  Program to_;
  Ranks everyone_, nobody_;
  std::vector<char> late_;
  std::vector<Ranks> run_at_, needed_;
  std::map<ValueId, Ranks> homes_;  // of states
  std::map<ValueId, std::vector<size_t>> readers_;
  std::map<Route, std::vector<Waiting>> waiting_;
  std::vector<size_t> delayed_;
  std::vector<char> held_back_;  // values that wait to travel or to be computed
};

}  // namespace

StageShare split_stages(const Program& p, const Spread& spread, int rank) {
  return Splitter(p, spread, spread.coordinate(spread.pipe_axis, rank)).run();
}

}  // namespace orrery
