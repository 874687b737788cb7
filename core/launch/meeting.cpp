// SPDX-License-Identifier: Apache-2.0
#include "launch/meeting.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/error.h"
#include "launch/meeting_server.h"
#include "launch/socket_store.h"
#include "launch/token.h"

namespace orrery {
namespace {

using Clock = std::chrono::steady_clock;

// A rank that joins, and the server that it joins: rank 0's or the launcher's.
struct Guest {
  const World& world;
  const char* host;
  Endpoint place;
  Clock::time_point end;

  int milliseconds_left() const {
    const auto left = end - Clock::now();
    return static_cast<int>(std::max<int64_t>(left / std::chrono::milliseconds(1), 0));
  }
};

// Connects to the server. Rank 0 may start later, so it tries again until the deadline.
int reach(const Guest& guest) {
  const bool afar = guest.place.port != 0;
  int fd;
  while ((fd = connect_to(guest.place, std::clamp(guest.milliseconds_left(), 1, 1000))) < 0) {
    const int error = errno;
    if (error != ECONNREFUSED && error != EAGAIN && error != ETIMEDOUT && error != EHOSTUNREACH &&
        error != ENETUNREACH)
      fail(ORR_FAILED, "cannot reach {} at '{}': {}", guest.host, guest.place.text(),
           std::strerror(error));
    if (Clock::now() > guest.end)
      fail(ORR_DEADLINE, "rank {} of {} ({}) waits for {} at '{}', which has not come: {}",
           guest.world.rank, guest.world.size, guest.world.source, guest.host, guest.place.text(),
           afar ? "is it an address of rank 0's host that the other hosts reach, and no firewall "
                  "between?"
                : "were all ranks started by one launcher on this host?");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (const uid_t user = afar ? geteuid() : peer_user(fd); user != geteuid()) {
    close(fd);
    fail(ORR_UNAVAILABLE,
         "user {} sits at '{}', where this job's {} should be: start the job again", user,
         guest.place.text(), guest.host);
  }
  return fd;
}

// Waits for the next message, which must be of this kind.
Message await(Connection& connection, const Guest& guest, wire::Kind kind) {
  const std::string place = guest.place.text();
  Message message;
  while (!connection.receive(message)) {
    if (connection.at_end())
      fail(ORR_RETRY, "{} at '{}' died while the job was forming", guest.host, place);
    pollfd ready{connection.socket(), POLLIN, 0};
    if (poll(&ready, 1, guest.milliseconds_left()) == 0)
      fail(ORR_DEADLINE, "{} at '{}' does not answer rank {}", guest.host, place, guest.world.rank);
  }
  if (message.frame.kind != kind ||
      (kind == wire::challenge && message.value.size() != nonce_bytes))
    fail(ORR_INVALID, "rank {} cannot join the job at '{}': {}", guest.world.rank, place,
         message.frame.kind == wire::refuse
             ? message.value
             : fmt::format("it is not {} that answers there", guest.host));
  return message;
}

std::unique_ptr<Connection> join(const Guest& guest, const std::string& token) {
  auto connection = std::make_unique<Connection>(reach(guest));
  const std::string theirs = await(*connection, guest, wire::challenge).value;
  const std::string nonce = new_nonce(), size = std::to_string(guest.world.size);
  const uint32_t rank = static_cast<uint32_t>(guest.world.rank);
  const std::string key = nonce + proof(token, join_text(theirs, nonce, rank, size));
  connection->send(wire::join, rank, key, size);
  const Message answer = await(*connection, guest, wire::welcome);
  if (!proves(answer.key, token, welcome_text(theirs, key)))
    fail(ORR_UNAVAILABLE, "who answers at '{}' does not know this job's {}: start the job again",
         guest.place.text(), token_variable);
  return connection;
}

}  // namespace

int port_number(const std::string& text) {
  int port = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || stop != text.data() + text.size() || port < 1 || port > 65535)
    fail(ORR_INVALID,
         "MASTER_PORT='{}' is no port: ranks on several hosts need one from 1 to 65535", text);
  return port;
}

std::string meeting_place(const World& world) {
  std::string name = fmt::format("orrery-{}-{}", geteuid(), world.job);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.') c = '-';
  return name;
}

std::unique_ptr<Store> meet(const World& world, const Endpoint& place, const std::string& token,
                            int64_t deadline_ns, std::unique_ptr<Store> launcher) {
  const Guest guest{world, "rank 0", place, Clock::now() + std::chrono::nanoseconds(deadline_ns)};
  std::unique_ptr<MeetingServer> server;
  if (world.rank == 0)
    server =
        std::make_unique<MeetingServer>(place, world.size, token, MeetingServer::Ends::are_seen);
  return open_store({guest.host, join(guest, token), std::move(server)}, world.size,
                    meeting_place(world), std::move(launcher));
}

std::unique_ptr<Store> meet_launcher(const World& world, const std::string& place,
                                     int64_t deadline_ns) {
  World here = world;
  here.rank = world.local_rank;
  here.size = world.local_size;
  const Guest guest{
      here, "the launcher", {place}, Clock::now() + std::chrono::nanoseconds(deadline_ns)};
  const char* job = std::getenv(wire::job_variable);
  return open_store({guest.host, join(guest, "")}, here.size, job ? job : "");
}

}  // namespace orrery
