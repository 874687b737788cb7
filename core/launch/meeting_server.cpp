// SPDX-License-Identifier: Apache-2.0
#include "launch/meeting_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "launch/local_socket.h"
#include "launch/quiet.h"
#include "launch/tcp_socket.h"
#include "launch/token.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

// Of those who connect and say nothing. When all places are taken the next waits outside, and who
// has had his time makes room: a rank needs little of it, be the machine ever so busy.
constexpr size_t most_strangers = 64;
constexpr std::chrono::seconds time_in_crowd{2}, time_to_speak{30};
constexpr size_t longest_hello = 256;

// The welcome of this host's ranks: the page goes with it.
void welcome(int socket, int page) {
  wire::Frame frame{wire::welcome, 0, 0, 0};
  iovec bytes{&frame, sizeof frame};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &page, sizeof(int));
  sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

MeetingServer::MeetingServer(int door, int ranks, std::string token)
    : ranks_(ranks), token_(std::move(token)), store_(ranks), door_(door) {
  stop_ = eventfd(0, EFD_CLOEXEC);
  const AllSignalsBlocked quiet;
  thread_ = std::thread([this] { serve(); });
}

MeetingServer::~MeetingServer() {
  eventfd_write(stop_, 1);
  thread_.join();
  close(door_);
  close(stop_);
}

void MeetingServer::serve() {
  for (;;) {
    std::vector<pollfd> fds{{stop_, POLLIN, 0}, {is_full() ? -1 : door_, POLLIN, 0}};
    for (const Visitor& v : visitors_) fds.push_back({v.connection->socket(), POLLIN, 0});
    for (int r = 0; r < ranks_; ++r)
      if (const int end = store_.server_end(r); end >= 0)
        fds.push_back(
            {end, static_cast<short>(store_.has_unsent(r) ? POLLIN | POLLOUT : POLLIN), 0});
    const int patience = visitors_.empty() ? -1 : 200;
    if (poll(fds.data(), fds.size(), patience) < 0 && errno != EINTR) return;
    if (fds[0].revents) return;
    if (fds[1].revents) let_in();
    std::erase_if(visitors_, [this](Visitor& v) { return hear(v); });
    show_out();
    for (int r = 0; r < ranks_; ++r)
      if (store_.server_end(r) >= 0 && !store_.serve(r)) lose(r);
  }
}

bool MeetingServer::is_full() const {
  return visitors_.size() >= most_strangers + static_cast<size_t>(ranks_);
}

void MeetingServer::show_out() {
  const auto before = Clock::now() - (is_full() ? time_in_crowd : time_to_speak);
  std::erase_if(visitors_, [before](const Visitor& v) { return v.since < before; });
}

// Said here and now: the launcher may end this process too before it comes to its own error.
void MeetingServer::lose(int rank) {
  store_.drop(rank);
  if (!store_.left(rank)) fmt::print(stderr, "orrery: rank {} died\n", rank);
}

// Another user of this host is shown the door before a byte of his is read; who comes from afar has
// to prove something first.
void MeetingServer::let_in() {
  const int socket = accept4(door_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) return;
  Visitor visitor{std::make_unique<Connection>(socket), "", Clock::now()};
  if (token_.empty() && peer_user(socket) != geteuid()) return;
  visitor.connection->limit(longest_hello);
  if (!token_.empty()) {
    tune(socket);
    visitor.nonce = new_nonce();
    visitor.connection->send(wire::challenge, 0, "", visitor.nonce);
  }
  visitors_.push_back(std::move(visitor));
}

// Whether the visitor is done with being one: let in as a rank, refused or gone.
bool MeetingServer::hear(Visitor& visitor) {
  Message hello;
  if (!visitor.connection->receive(hello)) return visitor.connection->at_end();
  if (hello.frame.kind != wire::join) return true;
  const std::string why = is_friend(visitor, hello)
                              ? objection(hello)
                              : "it has another " + std::string(token_variable);
  if (why.empty())
    admit(visitor, hello);
  else
    visitor.connection->send(wire::refuse, 0, "", why);
  return true;
}

bool MeetingServer::is_friend(const Visitor& visitor, const Message& hello) const {
  if (token_.empty()) return hello.key.empty();
  if (hello.key.size() != nonce_bytes + proof_bytes) return false;
  return proves(
      hello.key.substr(nonce_bytes), token_,
      join_text(visitor.nonce, hello.key.substr(0, nonce_bytes), hello.frame.id, hello.value));
}

std::string MeetingServer::objection(const Message& hello) const {
  const uint32_t rank = hello.frame.id;
  if (hello.value != std::to_string(ranks_))
    return fmt::format("rank 0 is one of {} ranks and rank {} one of {}", ranks_, rank,
                       hello.value);
  if (rank >= static_cast<uint32_t>(ranks_))
    return fmt::format("there is no rank {} among {}", rank, ranks_);
  if (store_.server_end(static_cast<int>(rank)) >= 0)
    return fmt::format("there are two ranks {}", rank);
  return "";
}

void MeetingServer::admit(Visitor& visitor, const Message& hello) {
  Connection& connection = *visitor.connection;
  connection.limit(wire::max_message);
  if (token_.empty())
    welcome(connection.socket(), store_.board());
  else
    connection.send(wire::welcome, 0, proof(token_, welcome_text(visitor.nonce, hello.key)), "");
  store_.adopt(static_cast<int>(hello.frame.id), std::move(visitor.connection));
}

}  // namespace orrery
