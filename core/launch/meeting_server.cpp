// SPDX-License-Identifier: Apache-2.0
#include "launch/meeting_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/error.h"
#include "base/quiet.h"
#include "launch/token.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

// How many more connections than ranks may be open without having joined. If so many are open, no
// more are accepted, and those that had their time are closed: a rank needs little time to join,
// even on a busy machine.
constexpr size_t most_strangers = 64;
constexpr std::chrono::seconds time_in_crowd{2}, time_to_speak{30};
constexpr size_t longest_hello = 256;

}  // namespace

MeetingServer::MeetingServer(const Endpoint& place, int ranks, std::string token, Ends ends)
    : place_(place),
      ranks_(ranks),
      token_(std::move(token)),
      ends_(ends),
      store_(ranks),
      listener_(listen_at(place)),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  const AllSignalsBlocked quiet;
  thread_ = std::thread([this] { serve(); });
}

MeetingServer::~MeetingServer() {
  stop();
  close(listener_);
  close(stop_);
}

void MeetingServer::stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_, 1);
  thread_.join();
  for (int r = 0; r < ranks_; ++r) store_.serve(r);
}

void MeetingServer::blame(const Error& why) {
  std::lock_guard lock(mutex_);
  store_.blame(wire::reason(why));
}

void MeetingServer::mark_ended(int rank) {
  std::lock_guard lock(mutex_);
  store_.mark_ended(rank);
}

void MeetingServer::serve() {
  while (await()) {
    std::lock_guard lock(mutex_);
    if (!is_full()) accept_visitor();
    std::erase_if(visitors_, [this](Visitor& v) { return read_visitor(v); });
    drop_late_visitors();
    for (int r = 0; r < ranks_; ++r)
      if (store_.connection_of(r) && !store_.serve(r)) lose(r);
  }
}

// Waits until a connection has something to read, or can take bytes that could not be sent before.
// Returns false if the server is to stop.
bool MeetingServer::await() {
  std::vector<pollfd> fds{{stop_, POLLIN, 0}};
  const auto add = [&](int socket, bool sends) {
    fds.push_back({socket, static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
  };
  int patience = -1;
  {
    std::lock_guard lock(mutex_);
    if (!is_full()) add(listener_, false);
    for (const Visitor& v : visitors_) add(v.connection->socket(), false);
    for (int r = 0; r < ranks_; ++r)
      if (const Connection* c = store_.connection_of(r)) add(c->socket(), c->has_unsent());
    if (!visitors_.empty()) patience = 200;
  }
  return (poll(fds.data(), fds.size(), patience) >= 0 || errno == EINTR) && !fds[0].revents;
}

bool MeetingServer::is_full() const {
  return visitors_.size() >= most_strangers + static_cast<size_t>(ranks_);
}

void MeetingServer::drop_late_visitors() {
  const auto before = Clock::now() - (is_full() ? time_in_crowd : time_to_speak);
  std::erase_if(visitors_, [before](const Visitor& v) { return v.since < before; });
}

// Handles the end of a rank's connection. The death of a rank is printed at once: the launcher may
// end this process too before it prints its own error.
void MeetingServer::lose(int rank) {
  if (ends_ == Ends::are_told) return;
  if (!store_.left(rank)) fmt::print(stderr, "orrery: rank {} died\n", rank);
  store_.mark_ended(rank);
}

// Accepts a connection. A process of another user of this host is refused before a byte is read.
void MeetingServer::accept_visitor() {
  const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  Visitor visitor{std::make_unique<Connection>(socket), new_nonce(), Clock::now()};
  if (place_.port == 0 && peer_user(socket) != geteuid()) return;
  tune(socket);
  visitor.connection->limit(longest_hello);
  visitor.connection->send(wire::challenge, 0, "", visitor.nonce);
  visitors_.push_back(std::move(visitor));
}

// Reads the visitor's message. Returns whether it is no visitor any more: it has joined as a rank,
// was refused or is gone.
bool MeetingServer::read_visitor(Visitor& visitor) {
  Connection& connection = *visitor.connection;
  Message hello;
  if (!connection.receive(hello)) return connection.at_end();
  if (hello.frame.kind != wire::join) return true;
  if (const std::string why = objection(visitor, hello); !why.empty()) {
    connection.send(wire::refuse, 0, "", why);
    return true;
  }
  connection.limit(wire::max_message);
  connection.send(wire::welcome, 0, proof(token_, welcome_text(visitor.nonce, hello.key)), "");
  store_.adopt(static_cast<int>(hello.frame.id), std::move(visitor.connection));
  return true;
}

std::string MeetingServer::objection(const Visitor& visitor, const Message& hello) const {
  const uint32_t rank = hello.frame.id;
  if (hello.key.size() != nonce_bytes + proof_bytes ||
      !proves(hello.key.substr(nonce_bytes), token_,
              join_text(visitor.nonce, hello.key.substr(0, nonce_bytes), rank, hello.value)))
    return fmt::format("it has another {}", token_variable);
  if (hello.value != std::to_string(ranks_))
    return fmt::format("rank 0 is one of {} ranks and rank {} one of {}", ranks_, rank,
                       hello.value);
  if (rank >= static_cast<uint32_t>(ranks_))
    return fmt::format("there is no rank {} among {}", rank, ranks_);
  if (store_.connection_of(static_cast<int>(rank)))
    return fmt::format("there are two ranks {}", rank);
  return "";
}

}  // namespace orrery
