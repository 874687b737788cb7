// SPDX-License-Identifier: Apache-2.0
#include "launch/tcp_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace orrery {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const Endpoint& place) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error =
      getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found);
  if (error != 0)
    fail(ORR_UNAVAILABLE,
         "'{}' is no host that is known here ({}): MASTER_ADDR or the hosts file names the host "
         "of rank 0",
         place.host, gai_strerror(error));
  return Addresses(found, &freeaddrinfo);
}

bool connect_within(int fd, const addrinfo& to, int milliseconds) {
  if (connect(fd, to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready{fd, POLLOUT, 0};
  socklen_t bytes = sizeof errno;
  if (poll(&ready, 1, milliseconds) <= 0)
    errno = ETIMEDOUT;
  else
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &errno, &bytes);
  return errno == 0;
}

bool is_loopback(const addrinfo& a) {
  if (a.ai_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a.ai_addr)->sin6_addr);
  return ntohl(reinterpret_cast<const sockaddr_in*>(a.ai_addr)->sin_addr.s_addr) >> 24 == 127;
}

bool means_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

std::string Endpoint::text() const { return host + ":" + std::to_string(port); }

int listen_at(const Endpoint& place) {
  const Addresses found = resolve(place);
  if (is_loopback(*found) && !means_loopback(place.host))
    fail(ORR_INVALID,
         "'{}' is this host alone to itself (127.0.0.0/8, see /etc/hosts), so that no other host "
         "could "
         "reach rank 0 there: give it by an address",
         place.host);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;  // a port whose last connections linger may be had
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
      return fd;
    error = errno;
    if (fd >= 0) close(fd);
  }
  if (error == EADDRINUSE)
    fail(ORR_UNAVAILABLE, "another process listens at {}: give this job a MASTER_PORT of its own",
         place.text());
  if (error == EADDRNOTAVAIL)
    fail(ORR_INVALID,
         "MASTER_ADDR='{}' is no address of the host that rank 0 runs on: set it to one",
         place.host);
  fail(ORR_FAILED, "rank 0 cannot listen at {}: {}", place.text(), std::strerror(error));
}

int connect_to(const Endpoint& place, int milliseconds) {
  const Addresses found = resolve(place);
  int error = ECONNREFUSED;
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    const int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect_within(fd, *a, milliseconds)) {
      tune(fd);
      return fd;
    }
    error = errno;
    if (fd >= 0) close(fd);
  }
  errno = error;
  return -1;
}

void tune(int socket) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30000);
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  char host[NI_MAXHOST] = "";
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0 ||
      address.ss_family == AF_UNIX ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), bytes, host, sizeof host, nullptr, 0,
                  NI_NUMERICHOST) != 0)
    return "127.0.0.1";
  return host;
}

}  // namespace orrery
