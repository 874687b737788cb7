// SPDX-License-Identifier: Apache-2.0
#include "launch/meeting.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "launch/local_socket.h"
#include "launch/meeting_server.h"
#include "launch/socket_store.h"
#include "launch/tcp_socket.h"
#include "launch/token.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

// Rank 0's store has the server beside it, which goes last.
class ServingStore : public ForwardingStore {
 public:
  ServingStore(std::unique_ptr<MeetingServer> server, std::unique_ptr<Store> store)
      : ForwardingStore(std::move(store)), server_(std::move(server)) {}
  ~ServingStore() override { store_.reset(); }

 private:
  std::unique_ptr<MeetingServer> server_;
};

int milliseconds_until(Clock::time_point end) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

// Rank 0 may start later: asks again until it is there. `ask` gives a socket, or -1 with errno.
template <class F>
int reach(const World& world, const std::string& place, Clock::time_point end, const char* remedy,
          F&& ask) {
  int fd;
  while ((fd = ask()) < 0) {
    const int error = errno;
    if (error != ECONNREFUSED && error != EAGAIN && error != ETIMEDOUT && error != EHOSTUNREACH &&
        error != ENETUNREACH)
      fail(ORR_FAILED, "cannot reach rank 0 at '{}': {}", place, std::strerror(error));
    if (Clock::now() > end)
      fail(ORR_DEADLINE, "rank {} of {} ({}) waits for rank 0 at '{}', which has not come: {}",
           world.rank, world.size, world.source, place, remedy);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return fd;
}

// The next message from rank 0.
Message await(Connection& connection, const World& world, const std::string& place,
              Clock::time_point end) {
  Message message;
  while (!connection.receive(message)) {
    if (connection.at_end())
      fail(ORR_RETRY, "rank 0 at '{}' died while the job was forming", place);
    pollfd ready{connection.socket(), POLLIN, 0};
    if (poll(&ready, 1, milliseconds_until(end)) == 0)
      fail(ORR_DEADLINE, "rank 0 at '{}' does not answer rank {}", place, world.rank);
  }
  return message;
}

[[noreturn]] void fail_refused(const World& world, const std::string& place,
                               const Message& answer) {
  fail(ORR_INVALID, "rank {} cannot join the job at '{}': {}", world.rank, place,
       answer.frame.kind == wire::refuse ? answer.value : "it is not rank 0 that answers there");
}

// The answer to our hello, and the descriptor of the page that comes with a welcome.
Message take_welcome(int fd, int& board) {
  char packet[1024];
  iovec bytes{packet, sizeof packet};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  Message answer;
  if (n < static_cast<ssize_t>(sizeof answer.frame))
    fail(ORR_RETRY, "rank 0 died while the job was forming");
  std::memcpy(&answer.frame, packet, sizeof answer.frame);
  answer.value.assign(packet + sizeof answer.frame, static_cast<size_t>(n) - sizeof answer.frame);
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_type == SCM_RIGHTS) std::memcpy(&board, CMSG_DATA(head), sizeof board);
  return answer;
}

std::unique_ptr<SocketStore> join(const World& world, const std::string& place,
                                  Clock::time_point end) {
  auto connection = std::make_unique<Connection>(
      reach(world, place, end, "were all ranks started by one launcher on this host?",
            [&] { return connect_to(place); }));
  if (const uid_t user = peer_user(connection->socket()); user != geteuid())
    fail(ORR_UNAVAILABLE,
         "user {} sits at '{}', where this job's rank 0 should be: start the job again", user,
         place);
  connection->send(wire::join, static_cast<uint32_t>(world.rank), "", std::to_string(world.size));
  pollfd ready{connection->socket(), POLLIN, 0};
  if (poll(&ready, 1, milliseconds_until(end)) <= 0)
    fail(ORR_DEADLINE, "rank 0 at '{}' does not answer rank {}", place, world.rank);
  int board = -1;
  const Message answer = take_welcome(connection->socket(), board);
  if (answer.frame.kind != wire::welcome || board < 0) fail_refused(world, place, answer);
  return std::make_unique<SocketStore>(SocketStore::Server::rank_0, std::move(connection), board,
                                       world.size, place);
}

std::unique_ptr<SocketStore> join_afar(const World& world, const Endpoint& at,
                                       const std::string& token, Clock::time_point end) {
  const std::string place = at.text();
  auto connection = std::make_unique<Connection>(reach(
      world, place, end,
      "is it an address of rank 0's host that the other hosts reach, and no firewall between?",
      [&] { return connect_to(at, std::clamp(milliseconds_until(end), 1, 1000)); }));
  const Message challenge = await(*connection, world, place, end);
  if (challenge.frame.kind != wire::challenge || challenge.value.size() != nonce_bytes)
    fail_refused(world, place, challenge);
  const std::string nonce = new_nonce(), size = std::to_string(world.size);
  const uint32_t rank = static_cast<uint32_t>(world.rank);
  const std::string key = nonce + proof(token, join_text(challenge.value, nonce, rank, size));
  connection->send(wire::join, rank, key, size);
  const Message answer = await(*connection, world, place, end);
  if (answer.frame.kind != wire::welcome) fail_refused(world, place, answer);
  if (!proves(answer.key, token, welcome_text(challenge.value, key)))
    fail(ORR_UNAVAILABLE, "who answers at '{}' does not know this job's {}: start the job again",
         place, token_variable);
  return std::make_unique<SocketStore>(SocketStore::Server::rank_0, std::move(connection), -1,
                                       world.size, meeting_place(world));
}

int port_number(const std::string& text) {
  int port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || stop != text.data() + text.size() || port < 1 || port > 65535)
    fail(ORR_INVALID,
         "MASTER_PORT='{}' is no port: ranks on several hosts need one from 1 to 65535", text);
  return port;
}

}  // namespace

std::string meeting_place(const World& world) {
  std::string name = fmt::format("orrery-{}-{}", geteuid(), world.job);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '-';
  return name;
}

std::unique_ptr<Store> meet(const World& world, int64_t deadline_ns) {
  const std::string place = meeting_place(world);
  const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns);
  std::unique_ptr<MeetingServer> server;
  if (world.rank == 0) server = std::make_unique<MeetingServer>(listen_at(place), world.size, "");
  auto store = join(world, place, end);
  return std::make_unique<ServingStore>(std::move(server), std::move(store));
}

std::unique_ptr<Store> meet_afar(const World& world, const std::string& token,
                                 int64_t deadline_ns) {
  const Endpoint place{world.address, port_number(world.port)};
  const auto end = Clock::now() + std::chrono::nanoseconds(deadline_ns);
  std::unique_ptr<MeetingServer> server;
  if (world.rank == 0)
    server = std::make_unique<MeetingServer>(listen_at(place), world.size, token);
  auto store = join_afar(world, place, token, end);
  return std::make_unique<ServingStore>(std::move(server), std::move(store));
}

}  // namespace orrery
