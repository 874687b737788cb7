// SPDX-License-Identifier: Apache-2.0
#include "run/device_exchanges.h"

#include <algorithm>
#include <orrery/sdk/traffic.hpp>

#include "base/error.h"
#include "comm/emulation.h"
#include "run/profile.h"

namespace orrery {

DeviceExchanges::DeviceExchanges(const RankPlan& plan, std::vector<Posted>& posted,
                                 Runtime& runtime, const Stream& compute)
    : plan_(plan),
      posted_(posted),
      runtime_(runtime),
      device_(runtime.device()),
      compute_(compute),
      out_(device_),
      back_(device_),
      lane_(device_, true),
      disk_(device_) {
  for (size_t i = 0; i < posted.size(); ++i)
    carried_.push_back(carry(plan.exchanges[i], posted[i]));
  lay_staging();
  note();
}

DeviceExchanges::Carried DeviceExchanges::carry(const Exchange& e, const Posted& p) const {
  Carried c;
  if (e.axis.empty() && !e.is_copy()) return c;  // one rank completes the sum: nothing is sent
  choose_way(c, e, p);
  for (size_t s = 0; s < p.tickets.size(); ++s)
    c.flights.push_back({Event(device_), Event(device_), Event(device_)});
  if (c.way == Way::filed) (e.to_tier ? c.bytes.send : c.bytes.recv) = e.bytes();
  if (c.way != Way::staged) return c;
  const auto elements =
      orr::traffic::extent(p.coll, runtime_.comm().rank(p.group), runtime_.comm().size(p.group));
  const int64_t element = orr_dtype_bytes(e.dtype);
  if (e.send.storage != kNone) c.bytes.send = static_cast<uint64_t>(elements.in * element);
  if (e.recv.storage != kNone) c.bytes.recv = static_cast<uint64_t>(elements.out * element);
  return c;
}

// Trees promise an order of sums, which the core keeps by composing them itself.
void DeviceExchanges::choose_way(Carried& c, const Exchange& e, const Posted& p) const {
  if (e.is_copy()) c.way = p.send_file || p.recv_file ? Way::filed : Way::moved;
  WorldComm& comm = runtime_.comm();
  if (e.is_copy() || !comm.on_streams()) return;
  orr_coll coll = p.coll;
  coll.send = p.send.first, coll.recv = p.recv.first;
  const bool native = !orr::traffic::is_tree(e.op) && is_native(comm.caps(), coll);
  if (!native)
    c.sum = DeviceSum::make(coll, comm.rank(p.group), comm.size(p.group), runtime_.kernels());
  if (native || c.sum) c.way = Way::ordered;
}

void DeviceExchanges::lay_staging() {
  std::vector<StagedBytes> bytes;
  for (const Carried& c : carried_) bytes.push_back(c.bytes);
  const StagingPlan staging = plan_staging(plan_, bytes);
  runtime_.staging().reserve(staging.bytes);
  uint64_t scratch = 0;
  for (const Carried& c : carried_) scratch = std::max(scratch, c.sum ? c.sum->scratch() : 0);
  if (scratch) runtime_.sums().reserve(scratch);
  for (size_t i = 0; i < carried_.size(); ++i) {
    Carried& c = carried_[i];
    const Exchange& e = plan_.exchanges[i];
    c.send = posted_[i].send, c.recv = posted_[i].recv;
    c.send.first = {runtime_.staging().memory(), staging.shifts[i].send + e.send.offset,
                    c.bytes.send};
    c.recv.first = {runtime_.staging().memory(), staging.shifts[i].recv + e.recv.offset,
                    c.bytes.recv};
  }
}

void DeviceExchanges::note() const {
  bool staged = false, ordered = false, summed = false;
  for (const Carried& c : carried_) {
    staged |= !c.flights.empty() && c.way == Way::staged;
    ordered |= c.way == Way::ordered;
    summed |= c.sum != nullptr;
  }
  const std::string &comm = runtime_options().comm, &device = device_.name();
  const auto tell = [](const std::string& what) { Profile::get().note(what); };
  if (ordered)
    tell(fmt::format("comm '{}' works on memory of device '{}', in stream order", comm, device));
  if (summed)
    tell(fmt::format("sums over leaves are messages of comm '{}' and launches of device '{}'", comm,
                     device));
  if (staged)
    tell(fmt::format("exchanges of comm '{}' are staged: device '{}' to pinned memory and back",
                     comm, device));
}

orr_buffer DeviceExchanges::on_host(orr_buffer b) const {
  b.memory = b.bytes ? &host_view_ : nullptr;
  return b;
}

void DeviceExchanges::begin() {
  host_view_ = *runtime_.staging().memory();
  host_view_.tier = ORR_TIER_HOST;
}

void DeviceExchanges::post(const Step& step) {
  Carried& c = carried_[static_cast<size_t>(step.index)];
  Posted& p = posted_[static_cast<size_t>(step.index)];
  Flight& f = c.flights[static_cast<size_t>(step.microbatch)];
  f.ready.record(compute_);
  if (c.way == Way::moved)
    move(step, p, f);
  else if (c.way == Way::ordered)
    enqueue(step, c, p, f);
  else
    stage(step, c, p, f);
}

// Stages an exchange. The lane begins when compute has done all work that was enqueued before: some
// of it may read the memory that is received into, or the staging memory.
void DeviceExchanges::stage(const Step& step, Carried& c, Posted& p, Flight& f) {
  const orr_buffer there = p.recv.at(step), pinned = c.recv.at(step);
  orr_buffer from = p.send.at(step);
  from.bytes = c.bytes.send;
  if (c.bytes.send) out_.wait(f.ready), out_.copy(c.send.at(step), from);
  f.out.record(out_);
  const Stream& in = c.way == Way::filed ? disk_ : lane_;
  auto before = [&f] { f.ready.sync(), f.out.sync(); };
  auto after = [&f, &in, to = orr_buffer{there.memory, there.offset, c.bytes.recv}, pinned] {
    if (to.bytes) in.copy(to, pinned);
    f.done.record(in);
  };
  WorldComm::Ticket& ticket = p.tickets[static_cast<size_t>(step.microbatch)];
  if (c.way == Way::filed) {
    const uint64_t bytes = plan_.exchanges[static_cast<size_t>(step.index)].bytes();
    const orr_buffer to = p.recv_file ? p.recv.at(step) : on_host(pinned);
    const orr_buffer of = p.send_file ? p.send.at(step) : on_host(c.send.at(step));
    filed_ = ticket.number =
        runtime_.copies().submit({{to, p.recv_file}, {of, p.send_file}, bytes, before, after});
    return;
  }
  sent_ = true;
  orr_coll coll = p.coll;
  coll.send = on_host(c.send.at(step)), coll.recv = on_host(pinned);
  ticket = runtime_.comm().submit(
      [coll, before, after](const WorldComm::Post& post) { before(), post({coll}), after(); },
      p.group);
}

void DeviceExchanges::enqueue(const Step& step, Carried& c, Posted& p, Flight& f) {
  orr_coll coll = p.coll;
  coll.send = p.send.at(step), coll.recv = p.recv.at(step), coll.stream = lane_.get();
  WorldComm::OnStream how{[this, &f] { lane_.wait(f.ready); },
                          [this, &f] { f.done.record(lane_); }};
  if (c.sum) {
    how.composition = &c.sum->composition();
    how.scratch = {runtime_.sums().memory(), 0, c.sum->scratch()};
    how.fold = [sum = c.sum.get(), coll, scratch = how.scratch](const SpotFold& fold) {
      sum->fold(fold, coll, scratch);
    };
  }
  p.tickets[static_cast<size_t>(step.microbatch)] =
      runtime_.comm().enqueue(coll, p.group, std::move(how));
  enqueued_ = sent_ = true;
}

void DeviceExchanges::move(const Step& step, Posted& p, Flight& f) {
  const Exchange& e = plan_.exchanges[static_cast<size_t>(step.index)];
  const Stream& stream = e.to_tier ? out_ : back_;
  stream.wait(f.ready);
  stream.copy(p.recv.at(step), p.send.at(step));
  f.done.record(stream);
  runtime_.copies().count(e.bytes());
}

void DeviceExchanges::wait(const Step& step) {
  const Carried& c = carried_[static_cast<size_t>(step.index)];
  const WorldComm::Ticket ticket =
      posted_[static_cast<size_t>(step.index)].tickets[static_cast<size_t>(step.microbatch)];
  if (c.way == Way::filed)
    runtime_.copies().wait(ticket.number);
  else if (c.way != Way::moved)
    runtime_.comm().wait(ticket);
  compute_.wait(c.flights[static_cast<size_t>(step.microbatch)].done);
}

void DeviceExchanges::finish() {
  if (!enqueued_) return;
  enqueued_ = false;
  runtime_.comm().wait(runtime_.comm().finish());
}

void DeviceExchanges::abandon(const std::string& why) noexcept {
  try {
    if (sent_) runtime_.comm().abort(why), runtime_.comm().drain();
  } catch (...) {  // the first error has been reported already
  }
  try {
    if (filed_) runtime_.copies().wait(filed_);
  } catch (...) {
  }
  for (const Stream* s : std::initializer_list<const Stream*>{&compute_, &out_, &back_}) {
    try {
      Event last(device_);
      last.record(*s);
      last.sync();
    } catch (...) {
    }
  }
}

}  // namespace orrery
