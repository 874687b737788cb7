// SPDX-License-Identifier: Apache-2.0
#include "job/meeting_server.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "job/local_socket.h"

namespace orrery {
namespace {

constexpr size_t most_visitors = 64;  // who connects and says nothing makes room for the next

// Threads inherit the mask: signals are the main thread's business.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old_, nullptr); }

 private:
  sigset_t old_;
};

// One packet, with a descriptor if there is one to give.
void answer(int socket, wire::Kind kind, const std::string& text, int descriptor) {
  wire::Frame frame{kind, 0, 0, static_cast<uint32_t>(text.size())};
  std::string packet(reinterpret_cast<char*>(&frame), sizeof frame);
  packet += text;
  iovec bytes{packet.data(), packet.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &descriptor, sizeof(int));
  }
  sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

MeetingServer::MeetingServer(const std::string& place, int ranks) : ranks_(ranks), store_(ranks) {
  door_ = listen_at(place);
  stop_ = eventfd(0, EFD_CLOEXEC);
  const AllSignalsBlocked quiet;
  thread_ = std::thread([this] { serve(); });
}

MeetingServer::~MeetingServer() {
  eventfd_write(stop_, 1);
  thread_.join();
  for (int visitor : visitors_) close(visitor);
  close(door_);
  close(stop_);
}

void MeetingServer::serve() {
  for (;;) {
    std::vector<pollfd> fds{{stop_, POLLIN, 0}, {door_, POLLIN, 0}};
    for (int visitor : visitors_) fds.push_back({visitor, POLLIN, 0});
    for (int r = 0; r < ranks_; ++r)
      if (store_.server_end(r) >= 0) fds.push_back({store_.server_end(r), POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents) return;
    if (fds[1].revents) let_in();
    std::erase_if(visitors_, [this](int visitor) { return hear(visitor); });
    for (int r = 0; r < ranks_; ++r)
      if (store_.server_end(r) >= 0 && !store_.serve(r)) lose(r);
  }
}

// Said here and now: the launcher may end this process too before it comes to its own error.
void MeetingServer::lose(int rank) {
  store_.drop(rank);
  if (!store_.left(rank)) fmt::print(stderr, "orrery: rank {} died\n", rank);
}

// A stranger is shown the door before a byte of his is read.
void MeetingServer::let_in() {
  const int visitor = accept4(door_, nullptr, nullptr, SOCK_CLOEXEC);
  if (visitor < 0) return;
  if (peer_user(visitor) != geteuid()) {
    close(visitor);
    return;
  }
  if (visitors_.size() == most_visitors) {
    close(visitors_.front());
    visitors_.erase(visitors_.begin());
  }
  visitors_.push_back(visitor);
}

// Whether the visitor is done with being one: let in as a rank, refused or gone.
bool MeetingServer::hear(int visitor) {
  char packet[256];
  const ssize_t n = recv(visitor, packet, sizeof packet, MSG_DONTWAIT | MSG_TRUNC);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  wire::Frame hello{};
  if (n >= static_cast<ssize_t>(sizeof hello)) std::memcpy(&hello, packet, sizeof hello);
  const bool whole = n <= static_cast<ssize_t>(sizeof packet) && hello.kind == wire::join &&
                     hello.key_bytes == 0 && n == static_cast<ssize_t>(sizeof hello + hello.value_bytes);
  if (!whole || !admit(visitor, hello, std::string(packet + sizeof hello, hello.value_bytes)))
    close(visitor);
  return true;
}

bool MeetingServer::admit(int visitor, const wire::Frame& hello, const std::string& size) {
  std::string why;
  if (size != std::to_string(ranks_))
    why = fmt::format("rank 0 is one of {} ranks and rank {} one of {}", ranks_, hello.id, size);
  else if (hello.id >= static_cast<uint32_t>(ranks_))
    why = fmt::format("there is no rank {} among {}", hello.id, ranks_);
  else if (store_.server_end(static_cast<int>(hello.id)) >= 0)
    why = fmt::format("there are two ranks {}", hello.id);
  answer(visitor, why.empty() ? wire::welcome : wire::refuse, why, why.empty() ? store_.board() : -1);
  if (why.empty()) store_.adopt(static_cast<int>(hello.id), visitor);
  return why.empty();
}

}  // namespace orrery
