// SPDX-License-Identifier: Apache-2.0
#include "comm/world_comm.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <orrery/sdk/traffic.hpp>
#include <utility>

#include "base/error.h"
#include "comm/composition.h"
#include "comm/emulation.h"
#include "launch/forming.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace orrery {
namespace {

// Carries out any operation of a world of one rank: copies the elements, unless it is in place.
void copy_own(const orr_coll& c) {
  if (!c.send.memory || !c.recv.memory) return;
  const int64_t n = c.counts ? c.counts[0] : c.count;
  const size_t bytes = static_cast<size_t>(n * orr_dtype_bytes(c.dtype));
  const char* from = static_cast<const char*>(orr_buffer_host(&c.send));
  void* to = orr_buffer_host(&c.recv);
  if (c.op == ORR_COLL_TREE_REDUCE_SCATTER) from += c.recv_counts[0] * orr_dtype_bytes(c.dtype);
  if (to != from && bytes > 0) std::memmove(to, from, bytes);
}

// Carries out messages of a rank to itself: matches each receive with the first send of the same
// tag and size.
void copy_to_self(const std::vector<orr_coll>& ops) {
  std::vector<const orr_coll*> sends;
  for (const orr_coll& c : ops)
    if (c.op == ORR_COLL_SEND) sends.push_back(&c);
  for (const orr_coll& c : ops) {
    if (c.op != ORR_COLL_RECV) continue;
    auto match = std::find_if(sends.begin(), sends.end(), [&](const orr_coll* s) {
      return s->tag == c.tag && s->count == c.count;
    });
    if (match == sends.end())
      fail(ORR_INVALID, "recv{}: a world of one receives only what it sends in the same group",
           c.name ? fmt::format(" '{}'", c.name) : "");
    orr_coll both = c;
    both.send = (*match)->send;
    copy_own(both);
    sends.erase(match);
  }
}

// Throws Error if the backend has formed no world, or another one than it was asked for. Such a
// world is not destroyed: that may wait for ranks that have theirs.
void check_world(const std::string& who, const orr_comm_api& api, orr_comm* comm,
                 const World& world) {
  if (!comm) fail(ORR_FAILED, "{}: world gave no communicator", who);
  const int32_t rank = api.rank(comm), size = api.world_size(comm);
  if (rank != world.rank || size != world.size)
    fail(ORR_FAILED, "{}: its world has this as rank {} of {}, but it is rank {} of {}", who, rank,
         size, world.rank, world.size);
}

}  // namespace

WorldComm::WorldComm(const World& world, const std::string& backend, uint64_t link_speed,
                     std::unique_ptr<Store> store, std::function<void()> begin_thread)
    : world_(world),
      link_speed_(link_speed),
      store_(store ? std::move(store) : Store::open(world)),
      groups_(1),
      begin_thread_(std::move(begin_thread)),
      lanes_(1) {
  if (world.size == 1) return;
  api_ = &Registry::get().comm(backend);
  char reason[256] = "";
  caps_.size = sizeof caps_;
  if (!api_->probe(api_->self, &caps_, reason, sizeof reason))
    fail(ORR_UNAVAILABLE, "comm '{}' does not work here: {}", backend, reason);
  if (caps_.max_ranks > 0 && world.size > caps_.max_ranks)
    fail(ORR_INVALID, "comm '{}' joins at most {} ranks, not {}", backend, caps_.max_ranks,
         world.size);
  groups_[0].rank = world.rank, groups_[0].size = world.size;
  const orr_comm_boot boot = store_->boot(world);
  form(*store_, world_, [&] {
    const std::string who = "comm '" + backend + "'";
    check(api_->world(api_->self, &boot, &groups_[0].comm), who);
    check_world(who, *api_, groups_[0].comm, world);
  });
  lanes_[0].start();
}

WorldComm::~WorldComm() {
  for (Lane& lane : lanes_) lane.finish();
  while (!memories_.empty()) free(memories_.back().memory);
  for (size_t i = groups_.size(); i-- > 0;)
    if (groups_[i].comm) api_->destroy(groups_[i].comm);
}

int WorldComm::split(int color, int key, bool own_lane, const std::string& name) {
  Group made;
  made.name = name;
  drain();
  wait(on_lane(0, [&] {
    if (groups_[0].comm) check(api_->split(groups_[0].comm, color, key, &made.comm));
    if (groups_[0].comm && color >= 0 && !made.comm)
      fail(ORR_FAILED, "split of color {} gave no communicator", color);
  }));
  if (color < 0) made.rank = -1;
  if (made.comm) made.rank = api_->rank(made.comm), made.size = api_->world_size(made.comm);
  if (own_lane && (caps_.flags & ORR_COMM_CONCURRENT)) made.lane = lanes_.size();
  if (made.lane) lanes_.emplace_back();
  groups_.push_back(made);
  return static_cast<int>(groups_.size()) - 1;
}

WorldComm::Ticket WorldComm::submit(std::vector<orr_coll> ops, int group) {
  return submit([ops = std::move(ops)](const Post& post) { post(ops); }, group);
}

WorldComm::Ticket WorldComm::submit(std::function<void(const Post&)> work, int group) {
  return on_lane(group, [this, work = std::move(work), &to = groups_[static_cast<size_t>(group)]] {
    work([this, &to](const std::vector<orr_coll>& ops) { execute(ops, to); });
  });
}

WorldComm::Ticket WorldComm::on_lane(int group, std::function<void()> work) {
  const size_t at = groups_[static_cast<size_t>(group)].lane;
  Lane& lane = lanes_[at];
  if (!api_) return {at, lane.submit(std::move(work))};
  if (!lane.started()) lane.start(begin_thread_);
  return {at, lane.submit([this, at, work = std::move(work)] {
            try {
              if (failed_) std::rethrow_exception(error_);
              work();
            } catch (const std::exception& e) {
              end_others(at, e.what());
              throw;
            }
          })};
}

// Notes the error of a lane, and ends the operations of the others.
void WorldComm::end_others(size_t lane, const std::string& why) {
  {
    std::lock_guard lock(mutex_);
    if (error_) return;
    error_ = std::current_exception(), failed_ = true;
  }
  for (size_t i = 0; i < lanes_.size(); ++i)
    if (i != lane && !lanes_[i].done(lanes_[i].last())) return abort(why);
}

void WorldComm::wait(Ticket ticket) {
  const auto wait = [&](Lane& lane, Lane::Ticket number) {
    try {
      lane.wait(number);
    } catch (...) {
      if (!failed_) throw;
    }
  };
  if (!failed_) wait(lanes_[ticket.lane], ticket.number);
  if (!failed_) return;
  for (Lane& lane : lanes_) wait(lane, lane.last());
  std::rethrow_exception(error_);
}

void WorldComm::drain() {
  for (size_t i = 0; i < lanes_.size(); ++i) wait({i, lanes_[i].last()});
}

bool WorldComm::on_streams() const {
  return api_ && (caps_.flags & ORR_COMM_STREAM_ORDERED) && (caps_.tiers >> ORR_TIER_DEVICE & 1);
}

WorldComm::Ticket WorldComm::enqueue(const orr_coll& op, int group, OnStream how) {
  return on_lane(group, [this, op = op, how = std::move(how),
                         &to = groups_[static_cast<size_t>(group)]]() mutable {
    how.before();
    number(op, to);
    enqueued_.push_back(note(op, to));
    how.composition ? compose_on_stream(op, how, to) : post_on_stream(&op, 1, to);
    how.after();
  });
}

WorldComm::Ticket WorldComm::finish() {
  return on_lane(0, [this] { await_streams(); });
}

WorldComm::Post WorldComm::direct(int group) {
  return [this, &to = groups_[static_cast<size_t>(group)]](const std::vector<orr_coll>& ops) {
    execute(ops, to);
  };
}

void WorldComm::number(orr_coll& op, Group& group) const {
  if (op.op != ORR_COLL_SEND && op.op != ORR_COLL_RECV) op.sequence = ++group.sequence;
}

void WorldComm::post_on_stream(const orr_coll* ops, size_t n, Group& group) {
  if (n == 0) return;
  orr_work* work = nullptr;
  check(api_->post(group.comm, ops, static_cast<int32_t>(n), &work));
  on_streams_.emplace_back(group.comm, work);
}

void WorldComm::compose_on_stream(const orr_coll& c, const OnStream& how, Group& group) {
  const uint64_t before = api_->bytes_sent(group.comm);
  const MessagesOf messages(c);
  for (const Composition::Round& round : how.composition->rounds) {
    std::vector<orr_coll> together;
    const auto add = [&](int32_t op, const orr::exchange::MessageAt<Spot>& m) {
      together.push_back(messages.one(op, m.peer, buffer_at(m.data, m.bytes, c, how.scratch)));
    };
    for (auto& m : round.sends) add(ORR_COLL_SEND, m);
    for (auto& m : round.recvs) add(ORR_COLL_RECV, m);
    post_on_stream(together.data(), together.size(), group);
    if (round.fold) how.fold(*round.fold);
  }
  count_composed(c, group, before);
}

// Waits for all enqueued work, also after an error, so that all of it is freed.
void WorldComm::await_streams() {
  std::exception_ptr error;
  for (auto& [comm, work] : std::exchange(on_streams_, {})) {
    try {
      check(api_->wait(comm, work));
    } catch (const Error&) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
  for (uint64_t number : std::exchange(enqueued_, {})) log_.end(number);
}

void WorldComm::execute(std::vector<orr_coll> ops, Group& group) {
  for (orr_coll& c : ops) number(c, group);
  if (!group.comm) {
    copy_to_self(ops);
    for (const orr_coll& c : ops)
      if (c.op != ORR_COLL_SEND && c.op != ORR_COLL_RECV) copy_own(c);
    return;
  }
  const Clock::time_point posted = Clock::now();
  std::vector<orr_coll> together;
  uint64_t last = 0;
  for (const orr_coll& c : ops) last = note(c, group);
  for (const orr_coll& c : ops) is_native(caps_, c) ? together.push_back(c) : compose(c, group);
  if (!together.empty()) post_now(together.data(), static_cast<int32_t>(together.size()), group);
  for (size_t i = 0; i < ops.size(); ++i) log_.end(last - i);
  if (link_speed_ > 0) std::this_thread::sleep_until(end_on_link(ops, group, posted));
}

void WorldComm::post_now(const orr_coll* ops, int32_t n, Group& group) {
  orr_work* work = nullptr;
  try {
    check(api_->post(group.comm, ops, n, &work));
    check(api_->wait(group.comm, work));
  } catch (const Error& e) {
    if (e.code() != ORR_DEADLINE) throw;
    throw Error(e.code(), e.what() + elsewhere(*ops));
  }
}

void WorldComm::compose(const orr_coll& c, Group& group) {
  const uint64_t before = api_->bytes_sent(group.comm);
  emulate(c, group.rank, group.size,
          [&](const orr_coll* messages, int32_t n) { post_now(messages, n, group); });
  composed_ |= uint64_t{1} << c.op;
  count_composed(c, group, before);
}

// The plugin counts the bytes of the messages. Those of a small composed operation may be more than
// its definition says; the difference is noted here.
void WorldComm::count_composed(const orr_coll& c, const Group& group, uint64_t sent_before) {
  const uint64_t sent = api_->bytes_sent(group.comm) - sent_before;
  beyond_definition_ += sent - orr::traffic::bytes_sent(c, group.rank, group.size);
}

std::string WorldComm::composed() const {
  std::string names;
  for (int32_t op = ORR_COLL_BARRIER; op <= ORR_COLL_TREE_REDUCE_SCATTER; ++op)
    if (composed_ >> op & 1)
      names += (names.empty() ? "" : ", ") + std::string(orr::traffic::name(op));
  return names;
}

// When these operations, which have just ended, would have ended over the simulated link. It
// carries both directions at once, and one operation after another for all lanes. A message begins
// when both ranks are there, so its time is added to its end, that of others to their posts.
WorldComm::Clock::time_point WorldComm::end_on_link(const std::vector<orr_coll>& ops,
                                                    const Group& group, Clock::time_point posted) {
  uint64_t sent = 0, received = 0;
  bool messages = true;
  for (const orr_coll& c : ops) {
    const uint64_t out = orr::traffic::bytes_sent(c, group.rank, group.size);
    messages &= c.op == ORR_COLL_SEND || c.op == ORR_COLL_RECV;
    if (c.op == ORR_COLL_RECV)
      received += static_cast<uint64_t>(c.count * orr_dtype_bytes(c.dtype));
    else
      sent += out, received += c.op == ORR_COLL_SEND ? 0 : out;
  }
  const auto lasts = [&](uint64_t bytes) {
    return std::chrono::nanoseconds(
        static_cast<int64_t>(static_cast<double>(bytes) / static_cast<double>(link_speed_) * 1e9));
  };
  const Clock::time_point begin = messages ? Clock::now() : posted;
  Clock::time_point end = begin;
  std::lock_guard lock(mutex_);
  if (sent) end = out_free_ = std::max(begin, out_free_) + lasts(sent);
  if (received) end = std::max(end, in_free_ = std::max(begin, in_free_) + lasts(received));
  return end;
}

// Is called after a deadline. Ranks that wait in different operations for each other all come here
// at the same time, and put the operation that they wait in into the store; returns a text that
// names two that differ. Returns "" if a rank puts nothing: it is frozen or computes, and the error
// names it already.
std::string WorldComm::elsewhere(const orr_coll& here) {
  const std::string mine =
      fmt::format("'{}' ({})", here.name ? here.name : "", here.where ? here.where : "");
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  const auto stands = [](int r) { return fmt::format("stands.{}", r); };
  std::string difference;
  try {
    store_->put(stands(rank()), mine);
    for (int r = 0; r < size(); ++r) {
      const auto left = std::chrono::nanoseconds(end - std::chrono::steady_clock::now()).count();
      const std::string other = store_->get_at_end(stands(r), std::max<int64_t>(left, 0));
      if (other != mine && difference.empty())
        difference = fmt::format("; rank {} is in {}, rank {} in {}", rank(), mine, r, other);
    }
  } catch (const Error&) {
    return "";
  }
  return difference;
}

orr_memory* WorldComm::allocate(uint64_t bytes, int group) {
  drain();
  orr_memory* memory = nullptr;
  orr_comm* comm = groups_[static_cast<size_t>(group)].comm;
  if (!(caps_.flags & ORR_COMM_REGISTERED)) comm = nullptr;
  if (comm) {
    check(api_->allocate(comm, bytes, &memory));
  } else {
    const orr_device_api& host = Registry::get().device("host");
    check(host.allocate(host.self, ORR_TIER_HOST, bytes, &memory));
  }
  memories_.push_back({memory, comm});
  return memory;
}

orr_memory* WorldComm::allocate_on_device(uint64_t bytes, int group) {
  drain();
  orr_memory* memory = nullptr;
  orr_comm* comm = groups_[static_cast<size_t>(group)].comm;
  check(api_->allocate(comm, bytes, &memory));
  memories_.push_back({memory, comm});
  return memory;
}

void WorldComm::free(orr_memory* memory) {
  auto at =
      std::find_if(memories_.begin(), memories_.end(), [&](auto& m) { return m.memory == memory; });
  if (at->comm) {
    api_->free(at->comm, memory);
  } else {
    const orr_device_api& host = Registry::get().device("host");
    host.free(host.self, memory);
  }
  memories_.erase(at);
}

uint64_t WorldComm::bytes_sent() const {
  uint64_t sum = 0;
  for (const Group& g : groups_)
    if (g.comm) sum += api_->bytes_sent(g.comm);
  return sum - beyond_definition_;
}

void WorldComm::abort(const std::string& reason) {
  if (groups_[0].comm) api_->abort(groups_[0].comm, reason.c_str());
}

}  // namespace orrery
