// SPDX-License-Identifier: Apache-2.0
#include "worker.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "error.h"

namespace server {
namespace {

// Throws unless device and comm backend can carry this mode. The threads of a server use several
// groups at the same time, on host memory, so the backend must be one for ranks of one host or one
// that allows many threads.
void check_place(const orr_driver_host& host) {
  if (std::string(host.device) != "host")
    fail(ORR_UNAVAILABLE, "servers of their own time work on the host and not on device '",
         host.device, "': use kernels of the host, or ", kRemedy);
  if (host.ranks == 1) return;
  const bool in_memory = host.caps->tiers >> ORR_TIER_HOST & 1;
  const bool one_host = host.local_ranks == host.ranks;
  if (!in_memory || (!one_host && !(host.caps->flags & ORR_COMM_ANY_SOURCE)))
    fail(ORR_UNAVAILABLE, "comm '", host.comm, "' cannot carry messages of several threads ",
         in_memory ? "between hosts" : "in host memory", ": use --comm mpi, or ", kRemedy);
}

}  // namespace

// Describes the run in one line: the same on all ranks and in every run of the same script.
std::string Worker::heading() const {
  char program[17];
  std::snprintf(program, sizeof program, "%016llx",
                static_cast<unsigned long long>(host_->program));
  int idle = 0;
  while (idle < host_->ranks && host_->leaf_first[idle + 1] == 0) ++idle;
  return text("program ", program, " microbatches ", host_->leaves, " ranks ", host_->ranks,
              " idle ", idle, " servers ", pace_.servers, " push ", pace_.push, " pull ",
              pace_.pull, " bound ", pace_.bound);
}

void Worker::open(const orr_driver_host& host) {
  check_place(host);
  host_ = &host;
  const std::vector<int64_t> leaf_first(host.leaf_first, host.leaf_first + host.ranks + 1);
  for (const auto& [first, last] : pushed_leaves(pace_, leaf_first, host.rank))
    orr::check(host.piece(host.self, first, last, &pieces_.emplace_back()));
  connect();
  if (host.rank < pace_.servers)
    reactor_ =
        std::make_unique<Reactor>(shares_[static_cast<size_t>(host.rank)], pace_, heading(), host);
}

// Makes a group of two ranks for each pair of a server and another rank.
void Worker::connect() {
  channels_.resize(static_cast<size_t>(host_->ranks));
  for (int s = 0; s < pace_.servers; ++s) {
    const Share& share = shares_[static_cast<size_t>(s)];
    Link& link = links_.emplace_back();
    link.values = orr::PackedStates(*host_, share.pushed);
    link.weights = orr::PackedStates(*host_, share.params);
    link.outgoing.resize(pieces_.size() * link.values.bytes());
    for (int r = 0; r < host_->ranks; ++r) {
      if (r == s) continue;
      const bool mine = host_->rank == s || host_->rank == r;
      int32_t group = 0;
      orr::check(host_->split(host_->self, mine ? 0 : -1, host_->rank, &group));
      if (!mine) continue;
      auto channel = std::make_unique<Channel>(*host_, group, host_->rank == s ? r : s);
      (host_->rank == s ? channels_[static_cast<size_t>(r)] : link.channel) = std::move(channel);
    }
  }
}

void Worker::begin(int64_t steps_done) {
  if (reactor_) reactor_->open(steps_done);
  for (int r = 0; r < host_->ranks && reactor_; ++r)
    if (const Channel* channel = channels_[static_cast<size_t>(r)].get())
      handlers_.push_back(std::make_unique<Handler>(*reactor_, *channel, r, *host_));
  for (Link& link : links_) link.version = 0;
  open_ = true, begun_at_ = steps_done, clock_ = 0, pushes_ = asked_again_ = 0;
}

void Worker::step(const orr_driver_step& step, double* outputs) {
  if (!open_) begin(step.step - 1);
  if (works()) {
    if (clock_ > 0 && clock_ % pace_.pull == 0) pull(Arrival::pull);
    compute(step, outputs);
    if (++clock_ % pace_.push == 0 && pending_) push();
  } else if (reactor_) {
    const Facts mean = reactor_->outputs_of(++clock_);
    std::copy(mean.begin(), mean.end(), outputs);
  }
}

// Computes the gradients and keeps them, with the numbers that go with them, for the next push.
// `outputs` become the means over the samples; NaN if this rank has no samples. Without samples
// there is nothing to push, except with a bound, where servers wait for the sums of every rank.
void Worker::compute(const orr_driver_step& step, double* outputs) {
  const auto n = static_cast<size_t>(host_->n_outputs);
  double all = 0;
  for (int32_t piece : pieces_) all += static_cast<double>(host_->samples(host_->self, piece));
  std::fill_n(outputs, n, all > 0 ? 0 : NAN);
  if (all == 0 && !pace_.bounded()) return;
  pending_ = true;
  std::vector<double> found(n);
  for (size_t i = 0; i < pieces_.size(); ++i) {
    orr::check(host_->compute(host_->self, pieces_[i], found.data()));
    const auto here = static_cast<double>(host_->samples(host_->self, pieces_[i]));
    for (size_t o = 0; o < n && here > 0; ++o) outputs[o] += found[o] * (here / all);
    for (Link& link : links_) link.values.pack(link.outgoing.data() + i * link.values.bytes());
  }
  facts_.assign(step.scalars, step.scalars + host_->n_scalars);
  facts_.insert(facts_.end(), outputs, outputs + n);
}

void Worker::push() {
  ++pushes_;
  for (Link& link : links_) push_to(link);
  for (Link& link : links_)  // gradients of the next steps are added to these states
    if (pace_.push > 1) link.values.clear();
  pending_ = false;
}

void Worker::push_to(Link& link) {
  if (!link.channel)
    return reactor_->push(host_->rank, clock_ - 1, link.version, facts_, link.outgoing.data());
  const Request request{Arrival::push, clock_ - 1, link.version};
  link.channel->send(&request, sizeof request, "requests");
  link.channel->send(facts_.data(), facts_.size() * sizeof(double), "numbers of a step");
  link.channel->send(link.outgoing.data(), link.outgoing.size(), "gradients");
}

void Worker::pull(Arrival::Kind kind) {
  for (Link& link : links_) {
    std::vector<std::byte> weights(link.weights.bytes());
    while ((link.version = weights_of(link, kind, weights.data())) < 0) {
      if (link.channel) ++asked_again_;
      if (reactor_) reactor_->check();
    }
    link.weights.unpack(weights.data());
  }
}

// Asks a server for weights, on this rank or another. Returns what Reactor::weights returns.
int64_t Worker::weights_of(Link& link, Arrival::Kind kind, std::byte* to) {
  if (!link.channel) return reactor_->weights(kind, host_->rank, clock_, to);
  const Request request{kind, clock_, 0};
  link.channel->send(&request, sizeof request, "requests");
  int64_t version = 0;
  link.channel->recv(&version, sizeof version, "version");
  if (version >= 0) link.channel->recv(to, link.weights.bytes(), "weights");
  return version;
}

void Worker::settle() {
  if (pending_) push();
  pull(Arrival::end);
  uint64_t put_off = 0;
  for (auto& handler : handlers_) put_off += handler->close();
  handlers_.clear();
  if (reactor_) reactor_->check();
  open_ = false;
  predicted_ += sent_in_session(put_off);
  if (host_->rank != 0) return;
  for (auto& [staleness, times] : reactor_->take_staleness())
    host_->metric(host_->self, begun_at_ + clock_, text("staleness.", staleness).c_str(),
                  static_cast<double>(times));
}

// Predicts the bytes that this rank sent, if all ranks took the same steps. How often it asked
// again and put others off cannot be known before, so these counts are taken from the session.
uint64_t Worker::sent_in_session(uint64_t put_off) const {
  const auto steps = static_cast<uint64_t>(clock_);
  const uint64_t pulls = steps > 0 ? (steps - 1) / static_cast<uint64_t>(pace_.pull) : 0;
  uint64_t bytes = put_off * sizeof(int64_t) + asked_again_ * sizeof(Request);
  for (const Link& link : links_) {
    if (!link.channel) continue;
    bytes += (works() ? pushes_ + pulls + 1 : 1) * sizeof(Request);
    if (works()) bytes += pushes_ * (facts_.size() * sizeof(double) + link.outgoing.size());
  }
  for (int r = 0; r < host_->ranks; ++r) {
    if (!channels_[static_cast<size_t>(r)]) continue;
    const bool worker = host_->leaf_first[r + 1] > host_->leaf_first[r];
    bytes += (worker ? pulls + 1 : 1) * (sizeof(int64_t) + reactor_->weight_bytes());
  }
  return bytes;
}

// The reactor is stopped because a handler may be waiting in it for a message that never comes.
void Worker::stop(const std::string& why) {
  if (reactor_) reactor_->stop(std::make_exception_ptr(orr::Error(ORR_RETRY, why)));
  handlers_.clear();
}

}  // namespace server
