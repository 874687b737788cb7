// SPDX-License-Identifier: Apache-2.0
#include "launch/socket_store.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "launch/environment.h"
#include "launch/quiet.h"

namespace orrery {

using Clock = std::chrono::steady_clock;

SocketStore::SocketStore(Server server, std::unique_ptr<Connection> connection, int board, int size,
                         std::string job)
    : server_(server), connection_(std::move(connection)), size_(size), job_(std::move(job)) {
  fcntl(connection_->socket(), F_SETFD, FD_CLOEXEC);
  const bool own = board < 0;
  void* page = mmap(nullptr, sizeof(wire::Board), own ? PROT_READ | PROT_WRITE : PROT_READ,
                    own ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, board, 0);
  if (!own) close(board);
  if (page == MAP_FAILED)
    fail(ORR_FAILED, "cannot read the page of {}: {}", server_name(), std::strerror(errno));
  board_ = static_cast<wire::Board*>(page);
  stop_ = eventfd(0, EFD_CLOEXEC);
  const AllSignalsBlocked quiet;
  listener_ = std::thread([this] { listen(); });
}

SocketStore::~SocketStore() {
  eventfd_write(stop_, 1);
  listener_.join();
  close(stop_);
  connection_->send(wire::leave, 0, "", "");
  munmap(board_, sizeof(wire::Board));
}

const char* SocketStore::server_name() const {
  return server_ == Server::launcher ? "the launcher" : "rank 0";
}

void SocketStore::put(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  send(wire::put, key, value);
}

std::string SocketStore::get(const std::string& key, int64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  return await(send(wire::get, key, ""), key, deadline_ns, lock);
}

// Deaths are looked for before what has come: the last words of the dead may still be on the way,
// and so may the reason why they have ended.
std::string SocketStore::await(uint32_t id, const std::string& what, int64_t deadline_ns,
                               std::unique_lock<std::mutex>& lock) {
  const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns);
  std::optional<std::string>& answer = asked_[id];
  const auto fail_now = [&](int code, const std::string& text) {
    asked_.erase(id);
    throw blamed_ && code == ORR_RETRY ? *blamed_ : Error(code, text);
  };
  for (;;) {
    const int gone = first_dead();
    const bool came = changed_.wait_for(lock, std::chrono::milliseconds(gone < 0 ? 20 : 100),
                                        [&] { return answer || server_gone_; });
    if (answer) {
      const std::string value = *answer;
      asked_.erase(id);
      return value;
    }
    if (gone >= 0 || came) fail_now(ORR_RETRY, loss());
    if (Clock::now() > end)
      fail_now(ORR_DEADLINE, fmt::format("no rank has put '{}' into the store for {:g} s", what,
                                         static_cast<double>(deadline_ns) * 1e-9));
  }
}

// [the listener]
void SocketStore::listen() {
  for (;;) {
    uint32_t asked = 0;
    {
      std::lock_guard lock(mutex_);
      for (Message message; connection_->receive(message);) {
        if (message.frame.kind == wire::ask) asked = message.frame.id;
        handle(message);
      }
      server_gone_ = connection_->at_end();
    }
    changed_.notify_all();
    if (server_gone_) return;
    if (asked) answer(asked);
    pollfd fds[2] = {{stop_, POLLIN, 0}, {connection_->socket(), POLLIN, 0}};
    poll(fds, 2, -1);
    if (fds[0].revents) return;
  }
}

// Answers to questions that were given up are dropped.
void SocketStore::handle(Message& message) {
  const wire::Frame& frame = message.frame;
  if (frame.kind == wire::ended && connection_->is_stream() && frame.id < wire::max_ranks)
    board_->ended[frame.id].store(static_cast<uint16_t>(std::atoi(message.value.c_str())),
                                  std::memory_order_release);
  if (frame.kind == wire::blame && !blamed_)
    blamed_ =
        Error(std::atoi(message.value.c_str()), message.value.substr(message.value.find(' ') + 1));
  if (frame.kind != wire::value) return;
  if (auto found = asked_.find(frame.id); found != asked_.end())
    found->second = std::move(message.value);
}

// One answer is for all who have asked meanwhile: the server keeps them.
void SocketStore::answer(uint32_t id) {
  const WorkAnswer work = current_work();
  std::lock_guard lock(mutex_);
  connection_->send(wire::doing, id, "",
                    fmt::format("{} {}", work.deadlines, work.text.substr(0, 200)));
}

std::optional<WorkAnswer> SocketStore::ask(int rank) {
  constexpr int64_t patience = 500'000'000;
  try {
    std::unique_lock lock(mutex_);
    const uint32_t id = send(wire::ask, std::to_string(rank), "");
    const std::string value = await(id, "", patience, lock);
    WorkAnswer answer;
    answer.deadlines = std::atoi(value.c_str());
    answer.text = value.substr(value.find(' ') + 1);
    return answer;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Nobody writes into the page that rank 0 has ended: its end of the connection tells, and comes
// after all that it has told.
int SocketStore::dead(int rank) const {
  if (rank < 0 || rank >= size_) return 0;
  if (const int at = board_->ended[rank].load(std::memory_order_acquire)) return at;
  if (server_ != Server::rank_0 || rank != 0) return 0;
  char byte;
  const ssize_t n = recv(connection_->socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool gone = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
  return gone ? wire::max_ranks + 1 : 0;
}

void SocketStore::blame(const Error& why) {
  std::lock_guard lock(mutex_);
  send(wire::blame, "", fmt::format("{} {}", why.code(), why.what()));
}

std::optional<Error> SocketStore::blamed() {
  std::lock_guard lock(mutex_);
  return blamed_;
}

void SocketStore::report(const std::string& error) {
  std::lock_guard lock(mutex_);
  send(wire::report, "", error.substr(0, wire::max_message / 2));
}

std::string SocketStore::loss() const {
  const int gone = first_dead();
  return gone >= 0 ? fmt::format("rank {} died while the job was forming", gone)
                   : fmt::format("{} is gone", server_name());
}

int SocketStore::first_dead() const {
  int first = -1;
  for (int r = 0; r < size_; ++r)
    if (const int at = dead(r); at && (first < 0 || at < dead(first))) first = r;
  return first;
}

uint32_t SocketStore::send(wire::Kind kind, const std::string& key, const std::string& value) {
  if (sizeof(wire::Frame) + key.size() + value.size() > wire::max_message)
    fail(ORR_INVALID, "store: the value of '{}' is larger than {} bytes", key, wire::max_message);
  if (kind == wire::get || kind == wire::ask) asked_[last_id_ + 1];  // before the answer can come
  connection_->send(kind, ++last_id_, key, value);
  if (connection_->is_broken()) throw blamed_ ? *blamed_ : Error(ORR_RETRY, loss());
  const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns());
  while (connection_->has_unsent()) {
    pollfd ready{connection_->socket(), POLLOUT, 0};
    poll(&ready, 1, 20);
    connection_->flush();
    if (Clock::now() > end) fail(ORR_DEADLINE, "{} takes no message", server_name());
  }
  return last_id_;
}

}  // namespace orrery
