// SPDX-License-Identifier: Apache-2.0
#include "launch/socket_store.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/quiet.h"
#include "launch/environment.h"
#include "launch/wire.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

class SocketStore : public Store {
 public:
  SocketStore(StoreHost host, int ranks, std::string job, std::unique_ptr<Store> launcher)
      : host_(std::move(host)),
        job_(std::move(job)),
        launcher_(std::move(launcher)),
        ended_(static_cast<size_t>(ranks)),
        stop_(eventfd(0, EFD_CLOEXEC)) {
    const AllSignalsBlocked quiet;
    listener_ = std::thread([this] { listen(); });
  }
  ~SocketStore() override {
    eventfd_write(stop_, 1);
    listener_.join();
    close(stop_);
    host_.connection->send(wire::leave, 0, "", "");
    host_.connection.reset();  // closed before the server is destroyed
  }

  void put(const std::string& key, const std::string& value) override {
    std::lock_guard lock(mutex_);
    send(wire::put, key, value);
  }
  std::string get(const std::string& key, int64_t deadline_ns) override {
    return inquire(wire::get, key, deadline_ns, true);
  }
  std::string get_at_end(const std::string& key, int64_t deadline_ns) override {
    return inquire(wire::get, key, deadline_ns, false);
  }
  int dead(int rank) const override;
  void blame(const Error& why) override;
  std::optional<Error> blamed() override {
    if (!is_blamed_) return std::nullopt;
    std::lock_guard lock(mutex_);
    return blamed_;
  }
  std::optional<WorkAnswer> ask(int rank) override;
  void report(const std::string& error) override;
  const std::string& job() const override { return job_; }

 private:
  std::string inquire(wire::Kind kind, const std::string& key, int64_t deadline_ns, bool heeds);
  Error loss() const;
  uint32_t send(wire::Kind kind, const std::string& key, const std::string& value);
  void listen();
  void handle(Message& message);
  void answer(uint32_t id);

  StoreHost host_;
  const std::string job_;
  const std::unique_ptr<Store> launcher_;
  std::vector<std::atomic<int>> ended_;  // by rank: see Store::dead
  std::atomic<bool> server_gone_{false}, is_blamed_{false};
  std::mutex mutex_;  // protects the connection and the members below
  std::condition_variable changed_;
  uint32_t last_id_ = 0;
  std::map<uint32_t, std::optional<Message>> asked_;  // open questions by id, with the answer
  std::optional<Error> blamed_;
  int stop_;
  std::thread listener_;
};

// Sends a question and waits for its answer. An answer that has come counts even if all ranks are
// to end, because the server may be gone already.
std::string SocketStore::inquire(wire::Kind kind, const std::string& key, int64_t deadline_ns,
                                 bool heeds_blame) {
  std::unique_lock lock(mutex_);
  const uint32_t id = send(kind, key, "");
  std::optional<Message>& slot = asked_[id];
  const bool ended = changed_.wait_for(lock, std::chrono::nanoseconds(deadline_ns), [&] {
    return slot || server_gone_ || (blamed_ && heeds_blame);
  });
  const std::optional<Message> came = std::move(slot);
  asked_.erase(id);
  if (came && came->frame.kind == wire::value) return came->value;
  if (blamed_) throw *blamed_;
  if (ended) throw loss();
  fail(ORR_DEADLINE, "no rank has put '{}' into the store for {:g} s", key,
       static_cast<double>(deadline_ns) * 1e-9);
}

// Handles messages until the store is destroyed. [the listener's thread]
void SocketStore::listen() {
  for (;;) {
    uint32_t asked = 0;
    {
      std::lock_guard lock(mutex_);
      for (Message message; host_.connection->receive(message);) {
        if (message.frame.kind == wire::ask) asked = message.frame.id;
        handle(message);
      }
      server_gone_ = host_.connection->at_end();
    }
    changed_.notify_all();
    if (server_gone_) return;
    if (asked) answer(asked);
    pollfd fds[2] = {{stop_, POLLIN, 0}, {host_.connection->socket(), POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[0].revents) return;
  }
}

// Handles a message. Answers that are no longer waited for are dropped.
void SocketStore::handle(Message& message) {
  const wire::Frame& frame = message.frame;
  if (frame.kind == wire::ended && frame.id < ended_.size())
    ended_[frame.id] = std::atoi(message.value.c_str());
  if (frame.kind == wire::blame && !blamed_) {
    blamed_ =
        Error(std::atoi(message.value.c_str()), message.value.substr(message.value.find(' ') + 1));
    is_blamed_ = true;
  }
  if (frame.kind != wire::value && frame.kind != wire::lost) return;
  if (auto found = asked_.find(frame.id); found != asked_.end()) found->second = std::move(message);
}

// Answers what this rank is doing. The server sends the answer to all ranks that have asked.
void SocketStore::answer(uint32_t id) {
  const WorkAnswer work = current_work();
  std::lock_guard lock(mutex_);
  host_.connection->send(wire::doing, id, "",
                         fmt::format("{} {}", work.deadlines, work.text.substr(0, 200)));
}

std::optional<WorkAnswer> SocketStore::ask(int rank) {
  constexpr int64_t patience = 500'000'000;
  try {
    const std::string value = inquire(wire::ask, std::to_string(rank), patience, false);
    return WorkAnswer{std::atoi(value.c_str()), value.substr(value.find(' ') + 1)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

// If rank 0 serves the store, no message says that it has ended: the server is gone with it.
int SocketStore::dead(int rank) const {
  if (rank < 0 || static_cast<size_t>(rank) >= ended_.size()) return 0;
  if (const int at = ended_[static_cast<size_t>(rank)]) return at;
  return rank == 0 && server_gone_ && host_.name == std::string_view("rank 0") ? wire::max_ranks + 1
                                                                               : 0;
}

// If the server is gone, the error is not sent: the other ranks notice that by themselves.
void SocketStore::blame(const Error& why) try {
  std::lock_guard lock(mutex_);
  send(wire::blame, "", wire::reason(why));
} catch (const Error&) {
}

void SocketStore::report(const std::string& error) {
  if (launcher_) return launcher_->report(error);
  std::lock_guard lock(mutex_);
  send(wire::report, "", error.substr(0, wire::max_message / 2));
}

// The error for a rank that has ended: it names the first one, because of which the others have.
Error SocketStore::loss() const {
  int first = -1;
  for (int r = 0; r < static_cast<int>(ended_.size()); ++r)
    if (const int at = dead(r); at && (first < 0 || at < dead(first))) first = r;
  return Error(ORR_RETRY, first < 0 ? fmt::format("{} is gone", host_.name)
                                    : fmt::format("rank {} died while the job was forming", first));
}

uint32_t SocketStore::send(wire::Kind kind, const std::string& key, const std::string& value) {
  if (sizeof(wire::Frame) + key.size() + value.size() > wire::max_message)
    fail(ORR_INVALID, "store: the value of '{}' is larger than {} bytes", key, wire::max_message);
  host_.connection->send(kind, ++last_id_, key, value);
  if (host_.connection->is_broken()) throw blamed_ ? *blamed_ : loss();
  const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns());
  while (host_.connection->has_unsent()) {
    pollfd ready{host_.connection->socket(), POLLOUT, 0};
    poll(&ready, 1, 20);
    host_.connection->flush();
    if (Clock::now() > end) fail(ORR_DEADLINE, "{} takes no message", host_.name);
  }
  return last_id_;
}

}  // namespace

std::unique_ptr<Store> open_store(StoreHost host, int ranks, const std::string& job,
                                  std::unique_ptr<Store> launcher) {
  return std::make_unique<SocketStore>(std::move(host), ranks, job, std::move(launcher));
}

}  // namespace orrery
