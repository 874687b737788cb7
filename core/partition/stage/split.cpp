// SPDX-License-Identifier: Apache-2.0
//
// Makes one coordinate's program: the ops that it runs, and messages for values that cross.
#include <algorithm>
#include <map>
#include <tuple>

#include "partition/localize.h"
#include "partition/stage.h"
#include "program/op.h"
#include "program/state.h"

namespace orrery {
namespace {

class Splitter {
 public:
  Splitter(const Program& p, const Mesh& mesh, const StageRanks& stage_ranks, int me)
      : from_(p),
        mesh_(mesh),
        axis_(mesh.schedule.axis),
        stage_ranks_(stage_ranks),
        me_(static_cast<size_t>(me)),
        to_(p.without_ops([this](ValueId v) { return concerns(v); })) {
    held_back_.assign(p.values().size(), false);
  }

  StageShare run() {
    for (size_t i = 0; i < from_.ops().size(); ++i) emit(i);
    flush();
    drop_foreign();
    StageShare share{std::move(to_), {}};
    for (auto& [v, ranks] : stage_ranks_.holders())
      if (ranks.count() > 1) share.held_twice.insert(value(v).name);
    return share;
  }

 private:
  const Value& value(ValueId v) const { return from_.value(v); }
  // Whether v is given to all ranks, or computed or needed here. With many stages, a stage has few
  // of the values.
  bool concerns(ValueId v) const {
    OpId maker = value(v).producer;
    return maker == kNone || stage_ranks_.needed(v).test(me_) ||
           stage_ranks_.run_at(static_cast<size_t>(maker)).test(me_);
  }

  // Emits op i. Ops that make scalars only are delayed, with the messages that they need, until
  // another op reads one of the scalars, so that these messages travel together.
  void emit(size_t i) {
    const Op& op = from_.ops()[i];
    if (stage_ranks_.for_everyone(i)) {
      delayed_.push_back(i);
      for (ValueId v : op.out) held_back_[static_cast<size_t>(v)] = true;
      return;
    }
    if (reads_waiting(op)) flush();
    emit_now(i);
  }

  void emit_now(size_t i) {
    const Op& op = from_.ops()[i];
    const Ranks& at = stage_ranks_.run_at(i);
    if (at.test(me_)) {
      Op copy = op;
      if (stage_ranks_.is_late(i)) copy.stage = 0;
      for (ValueId v : op.out) note(v, at);
      append(std::move(copy));
    }
    for (ValueId v : op.out)
      if (stage_ranks_.travels(v) && at.any()) move(i, v, at.find_first());
  }

  // Emits this rank's part of moving v from `source`, the first coordinate that has it, to those
  // that need it and do not compute it.
  void move(size_t i, ValueId v, size_t source) {
    const bool together = stage_ranks_.is_late(i) && stage_ranks_.scalar(v);
    if (together) held_back_[static_cast<size_t>(v)] = true;
    auto to = [&](size_t there) {
      if (together)
        waiting_[{source, there, value(v).type.dtype}].push_back({i, v});
      else if (source == me_)
        send(i, v, static_cast<int>(there));
      else
        receive(i, v, static_cast<int>(source));
    };
    if (source != me_) {
      if (stage_ranks_.needed(v).test(me_) && !stage_ranks_.run_at(i).test(me_)) to(me_);
      return;
    }
    const Ranks away = stage_ranks_.needed(v) - stage_ranks_.run_at(i);
    for (size_t there = away.find_first(); there != Ranks::npos; there = away.find_next(there))
      to(there);
  }

  // Notes that v lies at these coordinates.
  void note(ValueId v, const Ranks& at) {
    Placement how{Placement::owned, kNone, {}, {}};
    for (size_t r = at.find_first(); r != Ranks::npos; r = at.find_next(r))
      how.at.push_back(static_cast<int64_t>(r));
    Value& here = to_.mutable_value(v);
    here.layout = here.layout.with(axis_, how);
  }

  // Appends an op. One that reads a result of the update belongs to the update, whatever its phase
  // was.
  void append(Op op) {
    op.twin = kNone;
    for (ValueId v : op.in)
      if (OpId maker = to_.value(v).producer; maker != kNone)
        if (to_.ops()[static_cast<size_t>(maker)].phase == Phase::update) op.phase = Phase::update;
    to_.append(std::move(op));
  }

  Op message(size_t i, ValueId v, const char* kind, int peer) const {
    const Op& op = from_.ops()[i];
    Op m;
    m.kind = kind, m.phase = stage_ranks_.is_late(i) ? Phase::update : op.phase, m.site = op.site;
    m.stage = stage_ranks_.is_late(i) ? 0 : op.stage;
    m.attrs = {{"axis", mesh_.schedule.axis}, {"origin", mesh_.schedule.strategy}};
    m.set_exchange({.peer = peer, .tag = v, .chunk = op.stage, .made_in = m.phase});
    return m;
  }

  void send(size_t i, ValueId v, int peer) {
    Op m = message(i, v, "send", peer);
    m.in = {v};
    append(std::move(m));
  }

  // Scalars of the update (norms) travel together: each waits until an op reads one of them.
  struct Waiting {
    size_t maker;
    ValueId v;
  };
  using Route = std::tuple<size_t, size_t, int32_t>;  // from, to, dtype

  bool reads_waiting(const Op& op) const {
    return std::any_of(op.in.begin(), op.in.end(),
                       [&](ValueId v) { return held_back_[static_cast<size_t>(v)]; });
  }

  void flush() {
    for (auto& [route, scalars] : waiting_) {
      auto [source, there, dtype] = route;
      move_together(scalars, dtype, static_cast<int>(source == me_ ? there : source),
                    source == me_);
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
    const Site site = all.site;
    std::vector<ValueId> parts;
    for (size_t k = 0; k < scalars.size(); ++k)
      parts.push_back(to_.new_value({dtype, {1}}, Role::activation));
    ValueId row = to_.new_value({dtype, {n}}, Role::activation);
    auto add = [&](const char* kind, const Attrs& attrs, std::vector<ValueId> in,
                   std::vector<ValueId> out) {
      Op op;
      op.kind = kind, op.attrs = attrs, op.in = std::move(in), op.out = std::move(out);
      op.phase = Phase::update, op.site = site;
      append(std::move(op));
    };
    auto shape = [&](ValueId from, ValueId to) {
      add("reshape", {{"dims", to_.type(to).dims}}, {from}, {to});
    };
    if (away) {
      for (size_t k = 0; k < scalars.size(); ++k) shape(scalars[k].v, parts[k]);
      add("concat", {{"dim", int64_t{0}}}, parts, {row});
      all.in = {row};
      return append(std::move(all));
    }
    all.attrs.set("dtype", int64_t{dtype});
    all.attrs.set("dims", Dims{n});
    all.out = {row};
    append(std::move(all));
    add("split", {{"dim", int64_t{0}}, {"sizes", Dims(static_cast<size_t>(n), 1)}}, {row}, parts);
    for (size_t k = 0; k < scalars.size(); ++k) shape(parts[k], scalars[k].v);
  }

  // Emits the receiving of v in the first of this rank's chunks that needs it: chunks run in order
  // in forward, and in reverse in backward.
  void receive(size_t i, ValueId v, int peer) {
    Op m = message(i, v, "recv", peer);
    m.attrs.set("dtype", int64_t{value(v).type.dtype});
    m.attrs.set("dims", value(v).type.dims);
    m.out = {v};
    if (!stage_ranks_.is_late(i)) {
      int forward = INT32_MAX, backward = -1, made = from_.ops()[i].stage;
      for (size_t r : stage_ranks_.readers(v)) {
        const Op& reader = from_.ops()[r];
        if (stage_ranks_.is_late(r) || !stage_ranks_.run_at(r).test(me_)) continue;
        if (reader.phase == Phase::forward || reader.stage > made)
          forward = std::min(forward, reader.stage);
        else
          backward = std::max(backward, reader.stage);
      }
      bool ahead = from_.ops()[i].phase == Phase::forward && forward != INT32_MAX;
      m.phase = ahead ? Phase::forward : Phase::backward;
      m.stage = ahead ? forward : std::max(backward, 0);
    }
    append(std::move(m));
  }

  void drop_foreign() {
    std::erase_if(to_.mutable_updates(),
                  [&](auto& update) { return !stage_ranks_.holders().at(update.first).test(me_); });
    for (auto& [v, ranks] : stage_ranks_.holders()) {
      note(v, ranks);
      if (ranks.any() && !ranks.test(me_)) to_.mutable_value(v).part = {{}, 0, 0};  // no element
      if (ranks.none() && value(v).role == Role::state)
        to_.mutable_value(v).state = nullptr;  // nothing here reads it; other programs place it
    }
  }

  const Program& from_;
  const Mesh& mesh_;
  const Name axis_;  // of the stages
  const StageRanks& stage_ranks_;
  size_t me_;
  Program to_;
  std::map<Route, std::vector<Waiting>> waiting_;
  std::vector<size_t> delayed_;
  std::vector<char> held_back_;  // by value: it waits to travel or to be computed
};

}  // namespace

StageShare split_stages(const Program& p, const Mesh& mesh, const StageRanks& stage_ranks,
                        int rank) {
  return Splitter(p, mesh, stage_ranks, mesh.coordinate(mesh.schedule.axis, rank)).run();
}

}  // namespace orrery
