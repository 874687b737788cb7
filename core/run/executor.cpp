// SPDX-License-Identifier: Apache-2.0
#include "run/executor.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "lower/abi_op.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "program/elements.h"
#include "run/states.h"

namespace orrery {

namespace {

// Throws a kernel's error as "file:line: module: op: why". The op's name is not repeated if the
// kernel's message begins with it.
void check_launch(orr_status* status, const Op& op) {
  try {
    check(status);
  } catch (const Error& e) {
    const std::string kind = op.kind + ": ", why = e.what();
    throw Error(e.code(), op.site.prefix() + (why.starts_with(kind) ? why : kind + why));
  }
}

// The bytes of a storage from the place's offset to the end of its slot.
uint64_t bytes_behind(const Place& at, const Storage& s) {
  if (s.by == Slots::one) return s.whole() - at.offset;
  const auto slot = static_cast<int64_t>(s.bytes),
             inside = static_cast<int64_t>(at.offset) % std::max<int64_t>(slot, 1);
  return static_cast<uint64_t>(slot - (inside < 0 ? inside + slot : inside));
}

}  // namespace

Executor::Executor(RankPlan plan, Runtime& runtime, SharedArena& arena)
    : plan_(std::move(plan)), runtime_(runtime), arena_(arena) {
  arena_.reserve(plan_.arena_bytes);
  runtime_.form_groups(plan_.mesh);
  if (plan_.comm_bytes)
    comm_memory_ =
        runtime_.exchanged(plan_.comm_bytes, runtime_.group(plan_.mesh, plan_.mesh.batch_axis));
  if (plan_.host_stash) host_stash_ = memory_of(Tier::host, plan_.host_stash);
  if (plan_.disk_stash) disk_stash_ = spill_file(plan_.mesh.offload.directory, plan_.disk_stash);
  prepared_.reserve(plan_.launches.size());
  for (const Launch& launch : plan_.launches) prepare(launch);
  for (const Exchange& exchange : plan_.exchanges) prepare(exchange);
  if (runtime_options().check_nan) check_ = std::make_unique<CheckFinite>(plan_, runtime_.device());
  if (runtime_.device().is_host()) return;
  const auto place = [this](ValueId v) {
    return bound(plan_.places[static_cast<size_t>(v)]).first;
  };
  device_ = std::make_unique<DeviceRun>(plan_, posted_, runtime_, place);
  stream_ = device_->compute.get();
}

Executor::~Executor() {
  for (Prepared& p : prepared_)
    if (p.kernel) p.api->release(p.api->self, p.kernel);
}

Bound Executor::bound(const Place& at) const {
  if (at.storage == kNone) return {};
  const Storage& s = plan_.storage(at.storage);
  Bound b;
  b.by = s.by, b.stride = s.bytes, b.slots = s.slots;
  b.first = {arena_.memory(), s.offset + at.offset, bytes_behind(at, s)};
  if (s.region == Region::state)
    b.first.memory = s.state->memory.get(), b.first.offset = s.state->offset + at.offset;
  if (s.region == Region::comm) b.first.memory = comm_memory_.get();
  if (s.region == Region::host) b.first.memory = host_stash_.get();
  if (s.region == Region::disk) b.first.memory = nullptr;  // file_of() has the file
  return b;
}

void Executor::prepare(const Launch& launch) {
  Prepared p;
  p.api = &Registry::get().kernel(plan_.kernel_names[static_cast<size_t>(launch.kernels)]);
  AbiOp op(launch);
  check(p.api->prepare(p.api->self, op.get(), &p.kernel), launch.op.site.prefix() + launch.op.kind);
  p.n_in = launch.in_at.size(), p.n_out = launch.out_at.size();
  for (const Place& x : launch.in_at) p.bound.push_back(bound(x));
  for (const Place& x : launch.out_at) p.bound.push_back(bound(x));
  if (launch.workspace != kNone) p.bound.push_back(bound({launch.workspace, 0, {}}));
  for (const Bound& b : p.bound) {
    p.now.push_back(b.first);
    p.moves |= b.by != Slots::one;
  }
  if (Profile::get().on()) p.row = &Profile::get().row(launch);
  prepared_.push_back(std::move(p));
}

std::shared_ptr<SpillFile> Executor::file_of(const Place& at) const {
  const Storage& s = plan_.storage(at.storage);
  if (s.region == Region::disk) return disk_stash_;
  return s.is_away() ? s.state->file : nullptr;
}

void Executor::prepare(const Exchange& exchange) {
  Posted p;
  p.coll = exchange.descriptor();
  p.send = bound(exchange.send), p.recv = bound(exchange.recv);
  if (exchange.is_copy()) {
    p.send_file = file_of(exchange.send), p.recv_file = file_of(exchange.recv);
    p.send.first.bytes = p.recv.first.bytes = exchange.bytes();
  }
  if (exchange.is_bucket())  // all its slots: its tree nodes lie one after another
    p.send.first.bytes = plan_.storage(exchange.send.storage).whole(),
    p.recv.first.bytes = p.send.first.bytes - exchange.recv.offset;
  if (!exchange.axis.empty())
    std::tie(p.group, p.coll.root_or_peer) = runtime_.channel(plan_.mesh, exchange);
  p.tickets.resize(static_cast<size_t>(plan_.local.microbatches.calls()));
  posted_.push_back(std::move(p));
}

std::byte* Executor::address(ValueId v) const {
  if (device_) return device_->mirror.address(v);
  const Place& at = plan_.places[static_cast<size_t>(v)];
  if (at.storage == kNone || plan_.storage(at.storage).alive.empty()) return nullptr;
  orr_buffer b = bound(at).first;
  return static_cast<std::byte*>(orr_buffer_host(&b));
}

double Executor::scalar(ValueId v) const {
  return read_element(plan_.local.program.type(v).dtype, address(v));
}

void Executor::launch(const Step& step) {
  Prepared& p = prepared_[static_cast<size_t>(step.index)];
  const Launch& launch = plan_.launches[static_cast<size_t>(step.index)];
  if (p.moves)
    for (size_t i = 0; i < p.bound.size(); ++i) p.now[i] = p.bound[i].at(step);
  const orr_buffer *in = p.now.data(), *out = in + p.n_in, *workspace = out + p.n_out;
  if (verification_) {
    if (device_) device_->sync();
    verification_->before(launch, in);
  }
  Profile::Timer timer(profiled_ ? p.row : nullptr, launch.cost);
  orr_status* status =
      p.api->launch(p.kernel, stream_, in, out, launch.workspace != kNone ? workspace : nullptr);
  if (status) check_launch(status, launch.op);
  if ((profiled_ || spans_ || check_ || verification_) && device_) device_->sync();
  if (check_) check_->after(launch, in);
  if (verification_) verification_->after(launch, out);
}

void Executor::post(const Step& step) {
  Posted& p = posted_[static_cast<size_t>(step.index)];
  WorldComm::Ticket& ticket = p.tickets[static_cast<size_t>(step.microbatch)];
  Spans::Mark* mark =
      spans_ ? &spans_->at(static_cast<size_t>(&step - plan_.schedule.data())) : nullptr;
  if (const Exchange& e = plan_.exchanges[static_cast<size_t>(step.index)]; e.is_copy()) {
    CopyLane::Copy copy{{p.recv.at(step), p.recv_file}, {p.send.at(step), p.send_file}, e.bytes()};
    if (mark) {
      copy.before = [mark] { mark->begin = Spans::now(); };
      copy.after = [mark] { mark->end = Spans::now(), mark->lane = ORR_LANE_COPY; };
    }
    ticket.number = runtime_.copies().submit(std::move(copy));
    return;
  }
  orr_coll c = p.coll;
  c.send = p.send.at(step), c.recv = p.recv.at(step);
  if (!mark) return void(ticket = runtime_.comm().submit({c}, p.group));
  mark->lane = ORR_LANE_COMM + static_cast<int>(runtime_.comm().lane(p.group));
  ticket = runtime_.comm().submit(
      [c, mark](const WorldComm::Post& out) { Spans::run(*mark, [&] { out({c}); }); }, p.group);
}

void Executor::wait(const Step& step) {
  Profile::Timer timer(profiled_ ? &Profile::get().waiting() : nullptr);
  const WorldComm::Ticket ticket =
      posted_[static_cast<size_t>(step.index)].tickets[static_cast<size_t>(step.microbatch)];
  if (plan_.exchanges[static_cast<size_t>(step.index)].is_copy())
    runtime_.copies().wait(ticket.number);
  else
    runtime_.comm().wait(ticket);
}

void Executor::carry_out(const Step& step) {
  if (device_) return step_on_device(step);
  if (step.kind == Step::launch) return launch(step);
  step.kind == Step::post ? post(step) : wait(step);
}

void Executor::walk() {
  if (!spans_)
    for (const Step& step : plan_.schedule) carry_out(step);
  else
    for (size_t i = 0; i < plan_.schedule.size(); ++i) noted(i);
}

// On the host, the lanes note exchanges themselves.
void Executor::noted(size_t i) {
  const Step& step = plan_.schedule[i];
  if (step.kind == Step::post && !device_) return post(step);
  Spans::run(spans_->at(i), [&] { carry_out(step); });
}

// With a profile or checks each launch is awaited, and none is recorded.
void Executor::step_on_device(const Step& step) {
  if (step.kind == Step::post) return device_->exchanges.post(step);
  if (step.kind == Step::wait) {
    Profile::Timer timer(profiled_ ? &Profile::get().waiting() : nullptr);
    return device_->exchanges.wait(step);
  }
  launch(step);
}

void Executor::run_on_device() {
  const bool records = ran_ && !check_ && !verification_ && !Profile::get().on() && !spans_;
  const auto take = [this](size_t i) { spans_ ? noted(i) : step_on_device(plan_.schedule[i]); };
  try {
    device_->begin(arena_);
    for (size_t i = 0; i < plan_.schedule.size();) {
      const size_t end = records ? device_->recording.play(i, take) : i;
      if (end == i) take(i);
      i = std::max(end, i + 1);
    }
    device_->end();
  } catch (const std::exception& e) {
    device_->exchanges.abandon(e.what());
    throw;
  }
}

void Executor::run() {
  profiled_ = Profile::get().on() && ran_ && &arena_ == &runtime_.arena();
  Profile::Timer timer(profiled_ ? &Profile::get().programs() : nullptr);
  device_ ? run_on_device() : walk();
  ran_ = true;
}

void Executor::run(Spans& spans) {
  spans.begin(plan_);
  spans_ = &spans;
  try {
    run();
    if (runtime_.has_comm()) runtime_.comm().drain();  // the lanes have written their marks
  } catch (...) {
    spans_ = nullptr;
    throw;
  }
  spans_ = nullptr;
}

}  // namespace orrery
