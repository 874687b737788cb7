// SPDX-License-Identifier: Apache-2.0
#include "launch/store_server.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "launch/tcp_socket.h"

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
    fail(ORR_FAILED, "store: no socket for rank {}: {} (see ulimit -n)", rank,
         std::strerror(errno));
  ends_[rank].client = pair[1];
  adopt(rank, std::make_unique<Connection>(pair[0]));
}

// Where its peers reach it is in the table, for backends that connect them themselves.
void StoreServer::adopt(int rank, std::unique_ptr<Connection> connection) {
  put("address/" + std::to_string(rank), peer_address(connection->socket()));
  ends_[rank].server = std::move(connection);
  for (int r = 0; r < static_cast<int>(ends_.size()); ++r)
    if (board_->ended[r].load(std::memory_order_relaxed)) tell_ended(rank, r);
}

int StoreServer::server_end(int rank) const {
  return ends_[rank].server ? ends_[rank].server->socket() : -1;
}

void StoreServer::drop(int rank) {
  ends_[rank].server.reset();
  mark_ended(rank);
}

StoreServer::~StoreServer() {
  started();
  if (board_) munmap(board_, sizeof(wire::Board));
  if (board_fd_ >= 0) close(board_fd_);
}

void StoreServer::started() {
  for (Ends& e : ends_)
    if (e.client >= 0) close(std::exchange(e.client, -1));
}

void StoreServer::mark_ended(int rank) {
  if (board_->ended[rank].load(std::memory_order_relaxed) != 0) return;
  board_->ended[rank].store(++ended_, std::memory_order_release);
  for (int r = 0; r < static_cast<int>(ends_.size()); ++r) tell_ended(r, rank);
}

// Who has the page needs no telling.
void StoreServer::tell_ended(int rank, int about) {
  Connection* to = ends_[rank].server.get();
  if (to && to->is_stream())
    to->send(wire::ended, static_cast<uint32_t>(about), "",
             std::to_string(board_->ended[about].load(std::memory_order_relaxed)));
}

bool StoreServer::serve(int rank) {
  Connection& from = *ends_[rank].server;
  from.flush();
  for (Message message; from.receive(message);) handle(rank, message);
  return !from.at_end();
}

void StoreServer::handle(int rank, const Message& message) {
  switch (message.frame.kind) {
    case wire::put: put(message.key, message.value); break;
    case wire::get:
      if (auto found = table_.find(message.key); found != table_.end())
        answer({rank, message.frame.id}, found->second);
      else
        waiting_[message.key].push_back({rank, message.frame.id});
      break;
    case wire::report:
      if (words_[rank].empty()) words_[rank] = message.value;
      break;
    case wire::leave: ends_[rank].left = true; break;
    case wire::blame:
      if (std::exchange(blamed_, true)) break;
      for (Ends& e : ends_)
        if (e.server) e.server->send(wire::blame, 0, "", message.value);
      break;
    case wire::ask: pass_on({rank, message.frame.id}, message.key); break;
    case wire::doing:
      for (const Question& q : std::exchange(ends_[rank].curious, {})) answer(q, message.value);
      break;
    default: break;
  }
}

// Who cannot be asked does not answer.
void StoreServer::pass_on(const Question& q, const std::string& about) {
  const size_t rank = static_cast<size_t>(std::atoi(about.c_str()));
  if (rank >= ends_.size() || !ends_[rank].server) return;
  ends_[rank].curious.push_back(q);
  ends_[rank].server->send(wire::ask, 1, "", "");
}

void StoreServer::put(const std::string& key, const std::string& value) {
  table_[key] = value;
  for (const Question& q : std::exchange(waiting_[key], {})) answer(q, value);
}

void StoreServer::answer(const Question& q, const std::string& value) {
  if (ends_[q.rank].server) ends_[q.rank].server->send(wire::value, q.id, "", value);
}

}  // namespace orrery
