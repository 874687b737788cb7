// SPDX-License-Identifier: Apache-2.0
#include "run/served.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "run/states.h"

namespace orrery {
namespace {

class Near : public Server {
 public:
  Near(Reactor& reactor, int rank) : reactor_(reactor), rank_(rank) {}
  void push(int64_t clock, int64_t read, const Reactor::Facts& facts,
            const std::vector<std::byte>& values) override {
    reactor_.push(rank_, clock, read, facts, values.data());
  }
  int64_t weights(Arrival::Kind kind, int64_t clock, std::vector<std::byte>& to) override {
    return reactor_.weights(kind, rank_, clock, to.data());
  }

 private:
  Reactor& reactor_;
  int rank_;
};

class Far : public Server {
 public:
  explicit Far(const Line& line) : line_(line) {}
  void push(int64_t clock, int64_t read, const Reactor::Facts& facts,
            const std::vector<std::byte>& values) override {
    tell({Arrival::push, clock, read});
    line_.send(facts.data(), facts.size() * sizeof(double), "numbers of a step");
    line_.send(values.data(), values.size(), "gradients");
  }
  int64_t weights(Arrival::Kind kind, int64_t clock, std::vector<std::byte>& to) override {
    tell({kind, clock, 0});
    int64_t version = 0;
    line_.recv(&version, sizeof version, "version");
    if (version >= 0) line_.recv(to.data(), to.size(), "weights");
    return version;
  }

 private:
  void tell(const Letter& letter) { line_.send(&letter, sizeof letter, "letters"); }
  const Line& line_;
};

// Threads of one server drive several groups at once: a backend of one host, or one for many
// threads.
void check_backend(Runtime& runtime, const Serving& how) {
  const World& world = runtime.world();
  if (world.size == 1) return;
  const orr_comm_caps& caps = runtime.comm().caps();
  const bool host = caps.tiers >> ORR_TIER_HOST & 1;
  if (!host || (world.local_size != world.size && !(caps.flags & ORR_COMM_ANY_SOURCE)))
    fail(ORR_UNAVAILABLE,
         "{}: strategy.{}: comm '{}' cannot carry messages of several threads {}: use --comm mpi, "
         "or mode = \"sync\"",
         how.line, how.cause, runtime_options().comm, host ? "between hosts" : "in host memory");
}

// Servers work on other threads than the device's.
void check_device(Runtime& runtime, const Serving& how) {
  if (const Device& device = runtime.device(); !device.is_host())
    fail(ORR_UNAVAILABLE,
         "{}: strategy.{}: servers of their own time work on the host and not on device '{}': use "
         "kernels of the host, or mode = \"sync\"",
         how.line, how.cause, device.name());
}

// What servers do, and what workers leave for them.
struct CutStep {
  std::vector<ServerShare> shares;
  std::vector<ValueId> values;  // that any server wants
  StateList gradients;          // where workers leave them
};

CutStep cut_step(const Blueprint& trained) {
  CutStep cut;
  std::set<ValueId> wanted;
  for (int s = 0; s < trained.spread.serving.servers; ++s) {
    cut.shares.push_back(
        server_share(trained.program, trained.updating, trained.spread, trained.microbatches, s));
    wanted.insert(cut.shares.back().wants.begin(), cut.shares.back().wants.end());
  }
  for (ValueId v : wanted) {
    auto state = std::make_shared<State>();
    state->name = fmt::format("gradient.{}", v), state->type = trained.program.type(v),
    state->role = Role::state;
    state->site = trained.program.value(v).site;
    cut.values.push_back(v), cut.gradients.push_back(std::move(state));
  }
  return cut;
}

// Those of a batch of `rows` that a program computes.
int64_t samples_of(const Variant& v, int64_t rows) {
  const Leaves& leaves = v.plan().local.leaves;
  return std::min(rows, leaves.first_row() + leaves.count() * leaves.rows) -
         std::min(rows, leaves.first_row());
}

Blueprint worker_step(const Blueprint& trained, const std::vector<ValueId>& values,
                      const StateList& gradients) {
  Blueprint b = trained;
  b.program = worker_program(trained.program, trained.updating, values, gradients,
                             trained.spread.serving.push > 1);
  b.spread.alone = true;
  return b;
}

}  // namespace

Blueprint Served::worker(const Blueprint& trained) {
  CutStep cut = cut_step(trained);
  return worker_step(trained, cut.values, cut.gradients);
}

Served::Served(const Blueprint& trained, std::vector<std::string> scalars,
               const std::string& heading, Runtime& runtime)
    : runtime_(runtime),
      how_(trained.spread.serving),
      rank_(runtime.world().rank),
      world_(runtime.world().size) {
  check_device(runtime, how_);
  check_backend(runtime, how_);
  CutStep cut = cut_step(trained);
  gradients_ = std::move(cut.gradients);
  setting_.how = how_, setting_.world = world_, setting_.heading = heading, setting_.server = rank_;
  setting_.scalars = std::move(scalars);
  for (int r = 0; r < world_; ++r)
    setting_.ranges.push_back(
        static_cast<int>(pushed_leaves(trained.spread, trained.microbatches, r).size()));
  for (auto& [name, id] : trained.program.outputs()) setting_.outputs.push_back(name);
  hold_states(trained, cut.shares);
  connect(cut.shares, cut.values);
  if (rank_ < how_.servers) {
    reactor_ = std::make_unique<Reactor>(std::move(cut.shares[static_cast<size_t>(rank_)]),
                                         setting_, runtime);
    links_[static_cast<size_t>(rank_)].server = std::make_unique<Near>(*reactor_, rank_);
  }
}

// Optimizer states lie with their servers; all else is whole everywhere.
void Served::hold_states(const Blueprint& trained, const std::vector<ServerShare>& shares) {
  HeldParts here, own;
  for (auto& s : states_of(trained.program)) {
    Part part;
    for (size_t i = 0; i < shares.size(); ++i)
      if (std::find(shares[i].optimizer.begin(), shares[i].optimizer.end(), s) !=
          shares[i].optimizer.end())
        part.end = static_cast<int>(i) == rank_ ? s->type.elements() : 0;
    here.push_back({s, part}), served_.push_back(s);
  }
  hold(here, {}, world_);
  for (auto& s : gradients_) own.push_back({s, {}});
  hold(own, {}, 1);
}

void Served::connect(const std::vector<ServerShare>& shares, const std::vector<ValueId>& values) {
  lines_.resize(static_cast<size_t>(world_));
  for (int s = 0; s < how_.servers; ++s) {
    const ServerShare& share = shares[static_cast<size_t>(s)];
    StateList wanted;
    for (ValueId v : share.wants)
      wanted.push_back(gradients_[static_cast<size_t>(std::find(values.begin(), values.end(), v) -
                                                      values.begin())]);
    Link& link = links_.emplace_back();
    link.values = Parcel(std::move(wanted)), link.weights = Parcel(share.params);
    for (int r = 0; r < world_; ++r) {
      if (r == s) continue;
      const int group = runtime_.comm().split(rank_ == s || rank_ == r ? 0 : -1, rank_);
      if (rank_ != s && rank_ != r) continue;
      auto line = std::make_unique<Line>(runtime_.comm(), group, how_.line);
      if (rank_ == r) link.server = std::make_unique<Far>(*line);
      (rank_ == s ? lines_[static_cast<size_t>(r)] : link.line) = std::move(line);
    }
  }
}

void Served::add(const std::string& shape, const Blueprint& trained) {
  const std::vector<ValueId> values = cut_step(trained).values;  // in the same order in every trace
  for (size_t i = 0; i < std::max(values.size(), gradients_.size()); ++i)
    if (values.size() != gradients_.size() ||
        trained.program.type(values[i]) != gradients_[i]->type)
      fail(ORR_INVALID,
           "{}: strategy.{}: batches of another shape train other parameters; servers expect {} "
           "gradients of equal shapes for all batches",
           how_.line, how_.cause, gradients_.size());
  Blueprint b = worker_step(trained, values, gradients_);
  auto& variants = steps_[shape];
  for (const LeafRange& range : pushed_leaves(trained.spread, trained.microbatches, rank_)) {
    b.spread.only = range;
    variants.push_back(std::make_unique<Variant>(b, rank_, runtime_));
  }
}

void Served::begin(int64_t steps_done) {
  sent_before_ = runtime_.has_comm() ? runtime_.comm().bytes_sent() : 0;
  versions_.clear();  // taken before a door lets pushes in, which change them
  for (auto& s : served_) versions_.push_back(s->version);
  if (reactor_) reactor_->open(steps_done);
  for (int r = 0; r < world_ && reactor_; ++r)
    if (Line* line = lines_[static_cast<size_t>(r)].get())
      doors_.push_back(std::make_unique<Door>(*reactor_, *line, r));
  for (Link& link : links_) link.version = 0;
  open_ = true, begun_at_ = steps_done, clock_ = 0, pushes_ = asked_again_ = 0;
  runtime_.begin_work(shared_from_this());
}

std::map<std::string, double> Served::step(const std::string& shape, const BatchFields& batch,
                                           int64_t step,
                                           const std::map<std::string, double>& scalars) {
  if (!open_) begin(step - 1);
  Reactor::Facts outputs;
  if (works()) {
    if (clock_ > 0 && clock_ % how_.pull == 0) pull(Arrival::pull);
    outputs = compute(shape, batch, step, scalars);
    if (++clock_ % how_.push == 0 && pending_) push();
  } else {
    outputs = reactor_->outputs_of(++clock_);
  }
  std::map<std::string, double> named;
  for (size_t i = 0; i < outputs.size(); ++i) named[setting_.outputs[i]] = outputs[i];
  return named;
}

uint64_t Served::arena_bytes() const {
  uint64_t most = 0;
  for (auto& [shape, variants] : steps_)
    for (auto& v : variants) most = std::max(most, v->plan().arena_bytes);
  return most;
}

int64_t Served::samples(const std::string& shape, const BatchFields& batch) const {
  const int64_t rows = batch.begin()->second.type.dims[0];
  int64_t sum = 0;
  for (auto& v : steps_.at(shape)) sum += samples_of(*v, rows);
  return sum;
}

// Leaves the gradients, and the numbers that go with them; returns the outputs, the mean over the
// samples, NaN if there are none. Then there is no gradient, either: only sums, which with a bound
// all servers await.
Reactor::Facts Served::compute(const std::string& shape, const BatchFields& batch, int64_t step,
                               const std::map<std::string, double>& scalars) {
  auto& variants = steps_.at(shape);
  const double all = static_cast<double>(samples(shape, batch));
  if (all == 0 && how_.bound < 0) return Reactor::Facts(setting_.outputs.size(), NAN);
  pending_ = true;
  Reactor::Facts outputs(setting_.outputs.size(), all > 0 ? 0 : NAN);
  for (size_t i = 0; i < variants.size(); ++i) {
    Variant& v = *variants[i];
    v.set_scalars(scalars, step), v.set_batch(batch), v.run();
    std::map<std::string, double> found = v.fetch_scalars();
    const double here = static_cast<double>(samples_of(v, batch.begin()->second.type.dims[0]));
    for (size_t o = 0; o < outputs.size() && here > 0; ++o)
      outputs[o] += found.at(setting_.outputs[o]) * (here / all);
    for (Link& link : links_) {
      link.outgoing.resize(variants.size() * link.values.bytes());
      link.values.pack(link.outgoing.data() + i * link.values.bytes());
    }
  }
  facts_.clear();
  for (const std::string& name : setting_.scalars) facts_.push_back(scalars.at(name));
  facts_.insert(facts_.end(), outputs.begin(), outputs.end());
  return outputs;
}

void Served::push() {
  ++pushes_;
  for (Link& link : links_) link.server->push(clock_ - 1, link.version, facts_, link.outgoing);
  for (auto& s : gradients_)  // the next ones are added
    if (how_.push > 1) std::memset(state_address(*s), 0, s->type.bytes());
  pending_ = false;
}

void Served::pull(Arrival::Kind kind) {
  for (Link& link : links_) {
    std::vector<std::byte> weights(link.weights.bytes());
    while ((link.version = link.server->weights(kind, clock_, weights)) < 0) {
      if (link.line) ++asked_again_;
      if (reactor_) reactor_->check();
    }
    link.weights.unpack(weights.data());
  }
}

void Served::drain() {
  if (pending_) push();
  pull(Arrival::end);
  uint64_t put_off = 0;
  for (auto& door : doors_) put_off += door->close();
  doors_.clear();
  if (reactor_) reactor_->check();
  open_ = false;
  for (size_t i = 0; i < served_.size(); ++i)
    served_[i]->version = versions_[i] + 1;  // alike on all ranks
  if (runtime_.has_comm()) sent_ += runtime_.comm().bytes_sent() - sent_before_;
  count_session(put_off);
  if (rank_ == 0)
    for (auto& [staleness, times] : reactor_->take_staleness())
      runtime_.observers().metric(begun_at_ + clock_, fmt::format("staleness.{}", staleness),
                                  static_cast<double>(times));
}

// What was sent if all ranks took the same steps; but who had to ask again, and whom this rank has
// put off, is not known before.
void Served::count_session(uint64_t put_off) {
  count(put_off, sizeof(int64_t)), count(asked_again_, sizeof(Letter));
  const auto steps = static_cast<uint64_t>(clock_);
  const uint64_t pulls = steps > 0 ? (steps - 1) / static_cast<uint64_t>(how_.pull) : 0;
  for (const Link& link : links_) {
    if (!link.line) continue;
    count(works() ? pushes_ + pulls + 1 : 1, sizeof(Letter));
    if (!works()) continue;
    count(pushes_, facts_.size() * sizeof(double));
    count(pushes_, link.outgoing.size());
  }
  for (int r = 0; r < world_; ++r) {
    if (!lines_[static_cast<size_t>(r)]) continue;
    const uint64_t answers = setting_.ranges[static_cast<size_t>(r)] > 0 ? pulls + 1 : 1;
    count(answers, sizeof(int64_t)), count(answers, reactor_->weight_bytes());
  }
}

// A door may wait for a turn that never comes: no message would wake it.
void Served::abandon(const std::string& why) {
  if (runtime_.has_comm()) runtime_.comm().abort(why);
  if (reactor_) reactor_->stop(std::make_exception_ptr(Error(ORR_RETRY, why)));
  doors_.clear();
}

}  // namespace orrery
