// SPDX-License-Identifier: Apache-2.0
#include "job/socket_store.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "job/environment.h"

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
}

SocketStore::~SocketStore() {
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
  std::lock_guard lock(mutex_);
  const uint32_t id = send(wire::get, key, "");
  const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns);
  for (;;) {
    const int gone = first_dead();  // before looking: its last words may still be on the way
    pollfd ready{connection_->socket(), POLLIN, 0};
    poll(&ready, 1, 20);
    listen();
    if (answered_ == id) return std::exchange(answer_, "");
    if (gone >= 0) fail(ORR_RETRY, "rank {} died while the job was forming", gone);
    if (connection_->at_end()) fail(ORR_RETRY, "{} is gone", server_name());
    if (Clock::now() > end)
      fail(ORR_DEADLINE, "no rank has put '{}' into the store for {:g} s", key,
           static_cast<double>(deadline_ns) * 1e-9);
  }
}

// Takes what has come; answers to questions given up are dropped.
void SocketStore::listen() {
  for (Message message; connection_->receive(message);) {
    const wire::Frame& frame = message.frame;
    if (frame.kind == wire::ended && connection_->is_stream() && frame.id < wire::max_ranks)
      board_->ended[frame.id].store(1, std::memory_order_release);
    if (frame.kind != wire::value || frame.id != last_id_) continue;
    answered_ = frame.id;
    answer_ = std::move(message.value);
  }
}

// Whoever asks takes the news from other hosts, unless another thread is about it.
bool SocketStore::dead(int rank) const {
  if (connection_->is_stream())
    if (std::unique_lock lock(mutex_, std::try_to_lock); lock)
      const_cast<SocketStore*>(this)->listen();
  return ended(rank);
}

// Nobody writes into the page that rank 0 has ended: its end of the connection tells.
bool SocketStore::ended(int rank) const {
  if (rank < 0 || rank >= size_) return false;
  if (board_->ended[rank].load(std::memory_order_acquire) != 0) return true;
  if (server_ != Server::rank_0 || rank != 0) return false;
  char byte;
  const ssize_t n = recv(connection_->socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void SocketStore::report(const std::string& error) {
  std::lock_guard lock(mutex_);
  send(wire::report, "", error.substr(0, wire::max_message / 2));
}

int SocketStore::first_dead() const {
  for (int r = 0; r < size_; ++r)
    if (ended(r)) return r;
  return -1;
}

uint32_t SocketStore::send(wire::Kind kind, const std::string& key, const std::string& value) {
  if (sizeof(wire::Frame) + key.size() + value.size() > wire::max_message)
    fail(ORR_INVALID, "store: the value of '{}' is larger than {} bytes", key, wire::max_message);
  connection_->send(kind, ++last_id_, key, value);
  if (connection_->is_broken()) fail(ORR_RETRY, "{} is gone", server_name());
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
