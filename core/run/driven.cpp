// SPDX-License-Identifier: Apache-2.0
#include "run/driven.h"

#include <algorithm>

#include "base/error.h"
#include "edit/metric_name.h"
#include "partition/localize.h"
#include "plugin/host.h"
#include "plugin/inside.h"
#include "run/agree.h"
#include "run/thread_pool.h"
#include "run/watched.h"
#include "store/file.h"

namespace orrery {

// The functions that a driver calls.
struct Driven::Calls {
  static Driven& of(void* self) { return *static_cast<Driven*>(self); }

  static orr_status* piece(void* self, int64_t first, int64_t last, int32_t* out) {
    return guarded([&] {
      Driven& d = of(self);
      const auto& leaves = d.leaf_first_;
      const auto mine = static_cast<size_t>(d.rank_);
      if (!d.steps_.empty() || first < leaves[mine] || last > leaves[mine + 1] || first >= last)
        fail(ORR_INVALID, "the leaves [{}, {}) cannot be a piece of rank {}, which has [{}, {})",
             first, last, d.rank_, leaves[mine], leaves[mine + 1]);
      *out = static_cast<int32_t>(d.pieces_.size());
      d.pieces_.push_back({first, last});
    });
  }

  static orr_status* split(void* self, int32_t color, int32_t key, int32_t* group) {
    return guarded([&] {
      WorldComm& comm = of(self).runtime_.comm();
      *group = comm.split(color, key);
      of(self).groups_[*group] = comm.direct(*group);
    });
  }

  static orr_status* state(void* self, const char* name, orr_buffer* out) {
    return guarded([&] {
      const Driven& d = of(self);
      auto found = d.states_.find(name);
      if (found == d.states_.end()) found = d.states_.find(d.origin_ + "." + name);
      if (found == d.states_.end()) fail(ORR_INVALID, "there is no state '{}'", name);
      const State& s = *found->second;
      *out = {s.memory.get(), s.offset, s.part.type(s.type).bytes()};
    });
  }

  static int64_t samples(void* self, int32_t piece) {
    const Driven& d = of(self);
    if (!d.at_hand_ || piece < 0 || static_cast<size_t>(piece) >= d.pieces_.size()) return -1;
    const auto& [first, last] = d.pieces_[static_cast<size_t>(piece)];
    return d.samples(first, last, *d.at_hand_->batch);
  }

  static orr_status* compute(void* self, int32_t piece, double* outputs) {
    return guarded([&] { of(self).compute(piece, outputs); });
  }

  static orr_status* run(void* self, const char* program, const double* scalars, int64_t step) {
    return guarded([&] { of(self).run(program, scalars, step); });
  }

  static orr_status* post(void* self, int32_t group, const orr_coll* ops, int32_t n) {
    return guarded([&] { of(self).groups_.at(group)({ops, ops + n}); });
  }

  static void begin_thread(void*) { ThreadPool::get().unpin(); }

  static void metric(void* self, int64_t step, const char* tag, double value) {
    try {
      check_metric_name(tag, "the number");
    } catch (const Error& e) {
      return tell_once(fmt::format("strategy.{}: {}", of(self).origin_, e.what()));
    }
    of(self).runtime_.observers().metric(step, tag, value);
  }
};

// A driver waits for other ranks in any of these.
template <class Call>
void Driven::enter(const char* function, Call call) const {
  const Inside inside({plugin_, function, true});
  check(caught(call));
}

void refuse_undrivable(const Blueprint& b, const std::string& line) {
  if (runtime_options().verify)
    fail(ORR_INVALID,
         "{}: --verify {}: strategy.{} lets each rank take its own steps, which cannot be taken "
         "twice; leave --verify out",
         line, runtime_options().verify, b.asked.driving.origin);
  for (auto& [name, id] : b.program.outputs())
    if (!b.program.type(id).dims.empty())
      fail(ORR_INVALID,
           "{}: strategy.{} lets each rank take its own steps, whose results are only numbers: {} "
           "is {}; reduce it, or take it from run:eval",
           line, b.asked.driving.origin, title_of_result(name), to_string(b.program.type(id)));
}

Driven::Driven(const Blueprint& step, std::vector<std::string> scalars, Runtime& runtime,
               std::string told_as)
    : runtime_(runtime),
      told_as_(std::move(told_as)),
      rank_(runtime.world().rank),
      world_(runtime.world().size),
      origin_(step.asked.driving.origin),
      line_(step.asked.driving.line),
      plugin_(kept_text("strategy '" + origin_ + "'")),
      scalars_(std::move(scalars)),
      leaf_first_(assign_microbatches(step.microbatches, step.mesh)),
      driver_(step.asked.driving.driver) {
  for (auto& [name, id] : step.program.outputs()) outputs_.push_back(name);
  for (auto& [state, next] : step.program.updates())
    updated_[step.program.value(state).state->name] = step.program.type(state);
  bind_all_states(step);
  fill_host(step);
  try {
    enter("open", [&] { return driver_->open(driver_->arg, &host_); });
  } catch (const Error& e) {
    fail(e.code(), "{}: strategy.{}: {}", line_, origin_, e.what());
  }
  compile_beside(step);
}

// Gives memory to states. Those of the step lie on all ranks; those that only programs of one rank
// use lie on that rank.
void Driven::bind_all_states(const Blueprint& step) {
  StateParts lasting, passing;
  const auto note = [&](const std::shared_ptr<State>& s, int rank) {
    const bool here = rank == kNone || rank == rank_;
    StateParts& all = s->passing ? passing : lasting;
    auto known = std::find_if(all.begin(), all.end(), [&](auto& h) { return h.state == s; });
    if (known != all.end() || (s->passing && !here)) {
      if (known != all.end() && here) known->part = {};
      return;
    }
    Part part;
    if (!here) part.end = 0;
    all.push_back({s, part});
    states_[s->name] = s;
    if (!s->passing) lasting_.push_back(s);
  };
  for (auto& s : states_of(step.program)) note(s, kNone);
  for (const orrery::Beside& one : step.asked.driving.programs)
    for (auto& s : states_of(*one.program)) note(s, one.rank);
  bind_states(lasting, {}, world_);
  bind_states(passing, {}, 1);
}

void Driven::compile_beside(const Blueprint& step) {
  for (const orrery::Beside& one : step.asked.driving.programs) {
    if (one.rank != rank_) continue;
    Blueprint b;
    b.program = *one.program, b.mesh.world = world_;
    Beside& made = beside_[one.name];
    made.variant = std::make_unique<Variant>(b, 0, runtime_, made.arena);
  }
}

void Driven::fill_host(const Blueprint& step) {
  host_.size = sizeof host_, host_.self = this;
  host_.rank = rank_, host_.ranks = world_, host_.local_ranks = runtime_.world().local_size;
  host_.where = line_.c_str();
  if (world_ > 1) {
    host_.comm = runtime_options().comm.c_str();
    host_.caps = &runtime_.comm().caps();
  }
  host_.device = runtime_.device().name().c_str();
  host_.deadline_ns = deadline_ns();
  host_.program = program_digest(step);
  host_.leaves = step.microbatches, host_.leaf_first = leaf_first_.data();
  host_.n_scalars = static_cast<int32_t>(scalars_.size());
  host_.n_outputs = static_cast<int32_t>(outputs_.size());
  host_.piece = Calls::piece, host_.split = Calls::split, host_.state = Calls::state;
  host_.samples = Calls::samples, host_.compute = Calls::compute, host_.run = Calls::run;
  host_.post = Calls::post, host_.begin_thread = Calls::begin_thread;
  host_.metric = Calls::metric;
}

void Driven::add(const std::string& shape, const Blueprint& step) {
  std::map<std::string, Type> updated;
  for (auto& [state, next] : step.program.updates())
    updated[step.program.value(state).state->name] = step.program.type(state);
  if (updated != updated_)
    fail(ORR_INVALID,
         "{}: strategy.{}: batches of another shape train other parameters; without a common step "
         "batches of all shapes update the same {} states",
         line_, origin_, updated_.size());
  Blueprint b = step;
  Pieces& pieces = steps_[shape];
  for (const auto& piece : pieces_) {
    b.mesh.only = piece;
    pieces.push_back(std::make_unique<Variant>(b, rank_, runtime_));
  }
}

// Begins a session. The states' versions are noted before the driver's threads change them.
void Driven::begin() {
  sent_before_ = runtime_.has_comm() ? runtime_.comm().bytes_sent() : 0;
  versions_.clear();
  for (auto& s : lasting_) versions_.push_back(s->version);
  open_ = true;
  runtime_.begin_work(shared_from_this());
}

std::map<std::string, double> Driven::step(const std::string& shape, const BatchFields& batch,
                                           int64_t step,
                                           const std::map<std::string, double>& scalars) {
  if (!open_) begin();
  const AtHand now{&steps_.at(shape), &batch, step, &scalars};
  std::vector<double> numbers, outputs(outputs_.size());
  for (const std::string& name : scalars_) numbers.push_back(scalars.at(name));
  const orr_driver_step given{sizeof given, step, numbers.data()};
  struct Over {
    const AtHand*& at_hand;
    ~Over() { at_hand = nullptr; }
  } over{at_hand_};
  at_hand_ = &now;
  enter("step", [&] { return driver_->step(driver_->arg, &given, outputs.data()); });
  std::map<std::string, double> named;
  for (size_t i = 0; i < outputs.size(); ++i) named[outputs_[i]] = outputs[i];
  return named;
}

int64_t Driven::samples(int64_t first, int64_t last, const BatchFields& batch) const {
  const int64_t all = batch.begin()->second.type.dims[0], microbatches = leaf_first_.back(),
                rows = (all + microbatches - 1) / microbatches;
  return std::min(all, last * rows) - std::min(all, first * rows);
}

bool Driven::has_samples(const BatchFields& batch) const {
  const auto mine = static_cast<size_t>(rank_);
  return samples(leaf_first_[mine], leaf_first_[mine + 1], batch) > 0;
}

void Driven::compute(int32_t piece, double* outputs) {
  if (!at_hand_ || piece < 0 || static_cast<size_t>(piece) >= pieces_.size())
    fail(ORR_INVALID, "piece {} of {} is to be computed {} a step", piece, pieces_.size(),
         at_hand_ ? "in" : "outside of");
  Variant& v = *(*at_hand_->pieces)[static_cast<size_t>(piece)];
  v.set_scalars(*at_hand_->scalars, at_hand_->step), v.set_batch(*at_hand_->batch), v.run();
  const std::map<std::string, double> found = v.fetch_scalars();
  for (size_t i = 0; i < outputs_.size(); ++i) outputs[i] = found.at(outputs_[i]);
}

void Driven::run(const std::string& program, const double* scalars, int64_t step) {
  auto one = beside_.find(program);
  if (one == beside_.end()) fail(ORR_INVALID, "rank {} has no program '{}'", rank_, program);
  std::map<std::string, double> named;
  for (size_t i = 0; i < scalars_.size(); ++i) named[scalars_[i]] = scalars[i];
  one->second.variant->set_scalars(named, step);
  one->second.variant->run();
}

uint64_t Driven::arena_bytes() const {
  uint64_t most = 0;
  for (auto& [shape, pieces] : steps_)
    for (auto& v : pieces) most = std::max(most, v->plan().arena_bytes);
  return most;
}

void Driven::drain() {
  const Observers::Scope told = runtime_.observe(told_as_);
  enter("settle", [&] { return driver_->settle(driver_->arg); });
  open_ = false;
  for (size_t i = 0; i < lasting_.size(); ++i)
    lasting_[i]->version = versions_[i] + 1;  // the same on all ranks
  if (runtime_.has_comm()) sent_ += runtime_.comm().bytes_sent() - sent_before_;
}

void Driven::abandon(const std::string& why) {
  if (runtime_.has_comm()) runtime_.comm().abort(why);
  const Inside inside({plugin_, "stop", true});  // it may wait for threads that wait
  driver_->stop(driver_->arg, why.c_str());
}

uint64_t Driven::predicted() const {
  const Inside inside({plugin_, "predicted"});
  return driver_->predicted(driver_->arg);
}

}  // namespace orrery
