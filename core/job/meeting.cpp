// SPDX-License-Identifier: Apache-2.0
#include "job/meeting.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "job/local_socket.h"
#include "job/meeting_server.h"
#include "job/socket_store.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

// A rank's store; rank 0's has the server in it, which goes last.
class Joined : public Store {
 public:
  Joined(std::unique_ptr<MeetingServer> server, std::unique_ptr<SocketStore> store)
      : server_(std::move(server)), store_(std::move(store)) {}
  void put(const std::string& key, const std::string& value) override { store_->put(key, value); }
  std::string get(const std::string& key, int64_t deadline_ns) override {
    return store_->get(key, deadline_ns);
  }
  bool dead(int rank) const override { return store_->dead(rank); }
  void report(const std::string& error) override { store_->report(error); }
  const std::string& job() const override { return store_->job(); }

 private:
  std::unique_ptr<MeetingServer> server_;
  std::unique_ptr<SocketStore> store_;
};

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::max<int64_t>(left, 0));
}

// Rank 0 may start later: asks again until it is there.
int reach(const World& world, const std::string& place, Clock::time_point end) {
  int fd;
  while ((fd = connect_to(place)) < 0) {
    if (errno != ECONNREFUSED && errno != EAGAIN)
      fail(ORR_FAILED, "cannot reach rank 0 at '{}': {}", place, std::strerror(errno));
    if (Clock::now() > end)
      fail(ORR_DEADLINE,
           "rank {} of {} ({}) waits for rank 0 at '{}', which has not come: were all ranks started by "
           "one launcher on this host?",
           world.rank, world.size, world.source, place);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const uid_t user = peer_user(fd);
  if (user == geteuid()) return fd;
  close(fd);
  fail(ORR_UNAVAILABLE, "user {} sits at '{}', where this job's rank 0 should be: start the job again",
       user, place);
}

// The answer to our hello, and the descriptor of the page that comes with a welcome.
std::string take_answer(int fd, wire::Frame& frame, int& board) {
  char packet[1024];
  iovec bytes{packet, sizeof packet};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (n < static_cast<ssize_t>(sizeof frame)) fail(ORR_RETRY, "rank 0 died while the job was forming");
  std::memcpy(&frame, packet, sizeof frame);
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (head && head->cmsg_type == SCM_RIGHTS) std::memcpy(&board, CMSG_DATA(head), sizeof board);
  return std::string(packet + sizeof frame, static_cast<size_t>(n) - sizeof frame);
}

std::unique_ptr<SocketStore> join(const World& world, const std::string& place, Clock::time_point end) {
  const int fd = reach(world, place, end);
  const std::string size = std::to_string(world.size);
  const wire::Frame hello{wire::join, static_cast<uint32_t>(world.rank), 0,
                          static_cast<uint32_t>(size.size())};
  std::string packet(reinterpret_cast<const char*>(&hello), sizeof hello);
  packet += size;
  send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
  pollfd ready{fd, POLLIN, 0};
  wire::Frame frame{};
  int board = -1;
  try {
    if (poll(&ready, 1, milliseconds_until(end)) <= 0)
      fail(ORR_DEADLINE, "rank 0 at '{}' does not answer rank {}", place, world.rank);
    const std::string why = take_answer(fd, frame, board);
    if (frame.kind != wire::welcome || board < 0)
      fail(ORR_INVALID, "rank {} cannot join the job at '{}': {}", world.rank, place, why);
  } catch (...) {
    close(fd);
    throw;
  }
  return std::make_unique<SocketStore>(SocketStore::Server::rank_0, fd, board, world.size, place);
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
  if (world.rank == 0) server = std::make_unique<MeetingServer>(place, world.size);
  auto store = join(world, place, end);
  return std::make_unique<Joined>(std::move(server), std::move(store));
}

}  // namespace orrery
