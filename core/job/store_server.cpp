// SPDX-License-Identifier: Apache-2.0
#include "job/store_server.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace orrery {

StoreServer::StoreServer(int ranks) : ends_(ranks), words_(ranks) {
  board_fd_ = memfd_create("orrery-board", MFD_CLOEXEC);
  if (board_fd_ < 0 || ftruncate(board_fd_, sizeof(wire::Board)))
    fail(ORR_FAILED, "store: no memory for its page: {}", std::strerror(errno));
  void* page = mmap(nullptr, sizeof(wire::Board), PROT_READ | PROT_WRITE, MAP_SHARED, board_fd_, 0);
  if (page == MAP_FAILED) fail(ORR_FAILED, "store: cannot map its page: {}", std::strerror(errno));
  board_ = static_cast<wire::Board*>(page);
}

void StoreServer::invite(int rank) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    fail(ORR_FAILED, "store: no socket for rank {}: {} (see ulimit -n)", rank, std::strerror(errno));
  ends_[rank] = {pair[0], pair[1]};
}

void StoreServer::drop(int rank) {
  close(std::exchange(ends_[rank].server, -1));
  mark_ended(rank);
}

StoreServer::~StoreServer() {
  started();
  for (Ends& e : ends_)
    if (e.server >= 0) close(e.server);
  if (board_) munmap(board_, sizeof(wire::Board));
  if (board_fd_ >= 0) close(board_fd_);
}

void StoreServer::started() {
  for (Ends& e : ends_)
    if (e.client >= 0) close(std::exchange(e.client, -1));
}

void StoreServer::mark_ended(int rank) {
  board_->ended[rank].store(1, std::memory_order_release);
}

bool StoreServer::serve(int rank) {
  std::vector<char> packet(wire::max_message);
  for (;;) {
    const ssize_t n = recv(ends_[rank].server, packet.data(), packet.size(), MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    wire::Frame frame;
    if (n < static_cast<ssize_t>(sizeof frame)) continue;
    std::memcpy(&frame, packet.data(), sizeof frame);
    const uint64_t payload = uint64_t{frame.key_bytes} + frame.value_bytes;
    if (payload + sizeof frame == static_cast<uint64_t>(n))
      handle(rank, frame, packet.data() + sizeof frame);
  }
}

void StoreServer::handle(int rank, const wire::Frame& frame, const char* payload) {
  const std::string key(payload, frame.key_bytes);
  const std::string value(payload + frame.key_bytes, frame.value_bytes);
  switch (frame.kind) {
    case wire::put:
      table_[key] = value;
      for (const Question& q : std::exchange(waiting_[key], {})) answer(q, value);
      break;
    case wire::get:
      if (auto found = table_.find(key); found != table_.end())
        answer({rank, frame.id}, found->second);
      else
        waiting_[key].push_back({rank, frame.id});
      break;
    case wire::report:
      if (words_[rank].empty()) words_[rank] = value;
      break;
    case wire::leave: ends_[rank].left = true; break;
    default: break;
  }
}

void StoreServer::answer(const Question& q, const std::string& value) {
  const wire::Frame frame{wire::value, q.id, 0, static_cast<uint32_t>(value.size())};
  std::string packet(reinterpret_cast<const char*>(&frame), sizeof frame);
  packet += value;
  ::send(ends_[q.rank].server, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace orrery
