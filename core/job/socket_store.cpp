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
#include <vector>

#include "base/error.h"

namespace orrery {

using Clock = std::chrono::steady_clock;

SocketStore::SocketStore(Server server, int socket, int board, int size, std::string job)
    : server_(server), socket_(socket), size_(size), job_(std::move(job)) {
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  void* page = mmap(nullptr, sizeof(wire::Board), PROT_READ, MAP_SHARED, board, 0);
  close(board);
  if (page == MAP_FAILED) {
    close(socket);
    fail(ORR_FAILED, "cannot read the page of {}: {}", server_name(), std::strerror(errno));
  }
  board_ = static_cast<const wire::Board*>(page);
}

SocketStore::~SocketStore() {
  const wire::Frame bye{wire::leave, 0, 0, 0};
  ::send(socket_, &bye, sizeof bye, MSG_NOSIGNAL | MSG_DONTWAIT);
  munmap(const_cast<wire::Board*>(board_), sizeof(wire::Board));
  close(socket_);
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
  std::string value;
  for (;;) {
    const int gone = first_dead();  // before looking: its last words may still be on the way
    if (receive(id, value)) return value;
    if (gone >= 0) fail(ORR_RETRY, "rank {} died while the job was forming", gone);
    if (Clock::now() > end)
      fail(ORR_DEADLINE, "no rank has put '{}' into the store for {:g} s", key,
           static_cast<double>(deadline_ns) * 1e-9);
  }
}

// Nobody writes into the page that rank 0 has ended: its end of the connection tells.
bool SocketStore::dead(int rank) const {
  if (rank < 0 || rank >= size_) return false;
  if (board_->ended[rank].load(std::memory_order_acquire) != 0) return true;
  if (server_ != Server::rank_0 || rank != 0) return false;
  char byte;
  const ssize_t n = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void SocketStore::report(const std::string& error) {
  std::lock_guard lock(mutex_);
  send(wire::report, "", error.substr(0, wire::max_message / 2));
}

int SocketStore::first_dead() const {
  for (int r = 0; r < size_; ++r)
    if (dead(r)) return r;
  return -1;
}

uint32_t SocketStore::send(wire::Kind kind, const std::string& key, const std::string& value) {
  wire::Frame frame{kind, ++last_id_, static_cast<uint32_t>(key.size()),
                    static_cast<uint32_t>(value.size())};
  std::string packet(reinterpret_cast<char*>(&frame), sizeof frame);
  packet += key;
  packet += value;
  if (packet.size() > wire::max_message)
    fail(ORR_INVALID, "store: the value of '{}' is larger than {} bytes", key, wire::max_message);
  if (::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL) < 0)
    fail(ORR_RETRY, "{} is gone: {}", server_name(), std::strerror(errno));
  return last_id_;
}

// The answer to question `id`, if it comes soon; answers to questions given up are dropped.
bool SocketStore::receive(uint32_t id, std::string& value) {
  pollfd ready{socket_, POLLIN, 0};
  if (poll(&ready, 1, 20) <= 0) return false;
  std::vector<char> packet(wire::max_message);
  const ssize_t n = recv(socket_, packet.data(), packet.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n < static_cast<ssize_t>(sizeof(wire::Frame))) fail(ORR_RETRY, "{} is gone", server_name());
  wire::Frame frame;
  std::memcpy(&frame, packet.data(), sizeof frame);
  if (frame.kind != wire::value || frame.id != id) return false;
  value.assign(packet.data() + sizeof frame, packet.data() + n);
  return true;
}

}  // namespace orrery
