// SPDX-License-Identifier: Apache-2.0
//
// Makes the program of one stage: the ops that it runs, and messages for values that cross stages.
// Three stages, and y = relu(x) on stage 0, which stage 1 reads:
//
//   stage 0   y = relu(x); send y to stage 1
//   stage 1   receive y from stage 0; z = matmul(y, w)
//   stage 2   nothing of y
//
// Scalars of the update, such as the terms of a norm, are sent in one message for each pair of
// stages: they wait until an op reads one of them.
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
    waits_.assign(p.values().size(), false);
  }

  StageProgram run() {
    for (size_t i = 0; i < from_.ops().size(); ++i) emit(i);
    flush();
    drop_other_states();
    StageProgram mine{std::move(to_), {}};
    for (auto& [v, stages] : stage_ranks_.holders())
      if (stages.count() > 1) mine.tied.insert(value(v).name);
    return mine;
  }

 private:
  const Value& value(ValueId v) const { return from_.value(v); }
  // Whether v is an input or state, or is computed or needed on this stage. With many stages, a
  // stage has few of the values.
  bool concerns(ValueId v) const {
    OpId maker = value(v).producer;
    return maker == kNone || stage_ranks_.needed(v).test(me_) ||
           stage_ranks_.run_at(static_cast<size_t>(maker)).test(me_);
  }

  // Emits op i, unless it makes scalars only: such ops wait, as the messages that they need do,
  // until another op reads one of the scalars. So these messages can be one.
  void emit(size_t i) {
    const Op& op = from_.ops()[i];
    if (stage_ranks_.for_everyone(i)) {
      delayed_.push_back(i);
      for (ValueId v : op.out) waits_[static_cast<size_t>(v)] = true;
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
      for (ValueId v : op.out) set_stages(v, at);
      append(std::move(copy));
    }
    for (ValueId v : op.out)
      if (stage_ranks_.is_sent(v) && at.any()) transfer(i, v, at.find_first());
  }

  // Emits this stage's messages of v, which `source` sends, the first stage that has it, to those
  // that need it and do not compute it.
  void transfer(size_t i, ValueId v, size_t source) {
    const bool waits = stage_ranks_.is_late(i) && stage_ranks_.scalar(v);
    if (waits) waits_[static_cast<size_t>(v)] = true;
    auto to = [&](size_t target) {
      if (waits)
        waiting_[{source, target, value(v).type.dtype}].push_back({i, v});
      else if (source == me_)
        send(i, v, static_cast<int>(target));
      else
        receive(i, v, static_cast<int>(source));
    };
    if (source != me_) {
      if (stage_ranks_.needed(v).test(me_) && !stage_ranks_.run_at(i).test(me_)) to(me_);
      return;
    }
    const Ranks targets = stage_ranks_.needed(v) - stage_ranks_.run_at(i);
    for (size_t one = targets.find_first(); one != Ranks::npos; one = targets.find_next(one))
      to(one);
  }

  // Says in the layout of v which stages have it. Most values are laid out as the one before.
  void set_stages(ValueId v, const Ranks& stages) {
    Value& here = to_.mutable_value(v);
    if (here.layout != last_.before || stages != last_.stages) {
      Placement how{Placement::owned, kNone, {}, {}};
      for (size_t r = stages.find_first(); r != Ranks::npos; r = stages.find_next(r))
        how.at.push_back(static_cast<int64_t>(r));
      last_ = {here.layout, stages, here.layout.with(axis_, how)};
    }
    here.layout = last_.after;
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
    m.attrs = {{"axis", mesh_.schedule.axis}, {"origin", mesh_.schedule.pipeline_strategy}};
    m.set_exchange({.peer = peer, .tag = v, .chunk = op.stage, .made_in = m.phase});
    return m;
  }

  void send(size_t i, ValueId v, int peer) {
    Op m = message(i, v, "send", peer);
    m.in = {v};
    append(std::move(m));
  }

  // A scalar of the update that waits to be sent or received, and the op that makes it.
  struct Waiting {
    size_t maker;
    ValueId v;
  };
  using Route = std::tuple<size_t, size_t, int32_t>;  // source and target stage, dtype

  bool reads_waiting(const Op& op) const {
    return std::any_of(op.in.begin(), op.in.end(),
                       [&](ValueId v) { return waits_[static_cast<size_t>(v)]; });
  }

  // Emits all messages and ops that wait.
  void flush() {
    for (auto& [route, scalars] : waiting_) {
      auto [source, target, dtype] = route;
      if (source == me_)
        send_row(scalars, dtype, static_cast<int>(target));
      else
        receive_row(scalars, dtype, static_cast<int>(source));
    }
    waiting_.clear();
    std::fill(waits_.begin(), waits_.end(), false);
    std::vector<size_t> now = std::move(delayed_);
    delayed_.clear();
    for (size_t i : now) emit_now(i);
  }

  // A message of several scalars: a row of them, and each as a row of one.
  struct Row {
    Op message;
    ValueId all;
    std::vector<ValueId> each;
  };

  Row row_of(const std::vector<Waiting>& scalars, int32_t dtype, const char* kind, int peer) {
    Row row{message(scalars[0].maker, scalars[0].v, kind, peer), kNone, {}};
    for (size_t k = 0; k < scalars.size(); ++k)
      row.each.push_back(to_.new_value({dtype, {1}}, Role::activation));
    row.all = to_.new_value({dtype, {static_cast<int64_t>(scalars.size())}}, Role::activation);
    return row;
  }

  void add(const Site& site, const char* kind, const Attrs& attrs, std::vector<ValueId> in,
           std::vector<ValueId> out) {
    Op op;
    op.kind = kind, op.attrs = attrs, op.in = std::move(in), op.out = std::move(out);
    op.phase = Phase::update, op.site = site;
    append(std::move(op));
  }

  void send_row(const std::vector<Waiting>& scalars, int32_t dtype, int peer) {
    Row row = row_of(scalars, dtype, "send", peer);
    const Site site = row.message.site;
    for (size_t k = 0; k < scalars.size(); ++k)
      add(site, "reshape", {{"dims", Dims{1}}}, {scalars[k].v}, {row.each[k]});
    add(site, "concat", {{"dim", int64_t{0}}}, row.each, {row.all});
    row.message.in = {row.all};
    append(std::move(row.message));
  }

  void receive_row(const std::vector<Waiting>& scalars, int32_t dtype, int peer) {
    Row row = row_of(scalars, dtype, "recv", peer);
    const Site site = row.message.site;
    row.message.attrs.set("dtype", int64_t{dtype});
    row.message.attrs.set("dims", Dims{static_cast<int64_t>(scalars.size())});
    row.message.out = {row.all};
    append(std::move(row.message));
    add(site, "split", {{"dim", int64_t{0}}, {"sizes", Dims(scalars.size(), 1)}}, {row.all},
        row.each);
    for (size_t k = 0; k < scalars.size(); ++k)
      add(site, "reshape", {{"dims", to_.type(scalars[k].v).dims}}, {row.each[k]}, {scalars[k].v});
  }

  // Emits the receiving of v in the first of this stage's chunks that needs it: chunks run in order
  // in forward, and in reverse in backward.
  void receive(size_t i, ValueId v, int peer) {
    Op m = message(i, v, "recv", peer);
    m.attrs.set("dtype", int64_t{value(v).type.dtype});
    m.attrs.set("dims", value(v).type.dims);
    m.out = {v};
    if (!stage_ranks_.is_late(i)) std::tie(m.phase, m.stage) = first_need(i, v);
    append(std::move(m));
  }

  // The phase and the chunk of this stage's first op that reads v, the result of op i.
  std::pair<Phase, int> first_need(size_t i, ValueId v) const {
    int forward = INT32_MAX, backward = -1;
    const Op& maker = from_.ops()[i];
    for (size_t r : stage_ranks_.readers(v)) {
      const Op& reader = from_.ops()[r];
      if (stage_ranks_.is_late(r) || !stage_ranks_.run_at(r).test(me_)) continue;
      if (reader.phase == Phase::forward || reader.stage > maker.stage)
        forward = std::min(forward, reader.stage);
      else
        backward = std::max(backward, reader.stage);
    }
    if (maker.phase == Phase::forward && forward != INT32_MAX) return {Phase::forward, forward};
    return {Phase::backward, std::max(backward, 0)};
  }

  // Drops the updates of states that only other stages hold, and leaves these no element here.
  void drop_other_states() {
    std::erase_if(to_.mutable_updates(),
                  [&](auto& update) { return !stage_ranks_.holders().at(update.first).test(me_); });
    for (auto& [v, stages] : stage_ranks_.holders()) {
      set_stages(v, stages);
      if (stages.any() && !stages.test(me_)) to_.mutable_value(v).part = {{}, 0, 0};  // no element
      if (stages.none() && value(v).role == Role::state)
        to_.mutable_value(v).state = nullptr;  // nothing here reads it; other programs place it
    }
  }

  const Program& from_;
  const Mesh& mesh_;
  const Name axis_;  // of the stages
  const StageRanks& stage_ranks_;
  size_t me_;  // this stage
  Program to_;
  std::map<Route, std::vector<Waiting>> waiting_;
  std::vector<size_t> delayed_;  // ops that wait
  std::vector<char> waits_;      // by value: it waits to be sent, received or computed
  struct {
    Layout before;
    Ranks stages;
    Layout after;
  } last_;  // of set_stages()
};

}  // namespace

StageProgram split_stages(const Program& p, const Mesh& mesh, const StageRanks& stage_ranks,
                          int rank) {
  return Splitter(p, mesh, stage_ranks, mesh.coordinate(mesh.schedule.axis, rank)).run();
}

}  // namespace orrery
