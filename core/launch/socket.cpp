// SPDX-License-Identifier: Apache-2.0
#include "launch/socket.h"

#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace orrery {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address own_name(const std::string& name) {
  Address a;
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof un.sun_path)
    fail(ORR_INVALID, "the ranks cannot meet at '{}': a name has at most {} characters", name,
         sizeof un.sun_path - 1);
  std::memcpy(un.sun_path + 1, name.data(), name.size());  // byte 0 is NUL: an abstract name
  a.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  std::memcpy(&a.storage, &un, sizeof un);
  return a;
}

std::vector<Address> resolve(const Endpoint& place) {
  if (place.port == 0) return {own_name(place.host)};
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int error =
      getaddrinfo(place.host.c_str(), std::to_string(place.port).c_str(), &hints, &found);
  if (error != 0)
    fail(ORR_UNAVAILABLE,
         "'{}' is no host that is known here ({}): MASTER_ADDR or the hosts file names the host "
         "of rank 0",
         place.host, gai_strerror(error));
  std::vector<Address> all;
  for (const addrinfo* a = found; a; a = a->ai_next) {
    std::memcpy(&all.emplace_back().storage, a->ai_addr, a->ai_addrlen);
    all.back().bytes = a->ai_addrlen;
  }
  freeaddrinfo(found);
  return all;
}

int new_socket(const Address& a) {
  return socket(a.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

bool connect_within(int fd, const Address& to, int milliseconds) {
  if (connect(fd, to.get(), to.bytes) == 0) return true;
  if (errno != EINPROGRESS) return false;
  pollfd ready{fd, POLLOUT, 0};
  socklen_t bytes = sizeof errno;
  if (poll(&ready, 1, milliseconds) <= 0)
    errno = ETIMEDOUT;
  else
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &errno, &bytes);
  return errno == 0;
}

bool is_loopback(const Address& a) {
  if (a.storage.ss_family == AF_INET6)
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(a.get())->sin6_addr);
  return a.storage.ss_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(a.get())->sin_addr.s_addr) >> 24 == 127;
}

// Whether other hosts may reach it: an address of a link alone means another host on each link.
bool is_of_a_network(const ifaddrs& a) {
  if (!a.ifa_addr || !(a.ifa_flags & IFF_UP) || a.ifa_flags & IFF_LOOPBACK) return false;
  if (a.ifa_addr->sa_family == AF_INET6)
    return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(a.ifa_addr)->sin6_addr);
  return a.ifa_addr->sa_family == AF_INET &&
         ntohl(reinterpret_cast<const sockaddr_in*>(a.ifa_addr)->sin_addr.s_addr) >> 16 != 0xa9fe;
}

std::string in_numbers(const sockaddr* address, socklen_t bytes) {
  char host[NI_MAXHOST] = "";
  return getnameinfo(address, bytes, host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0
             ? host
             : "127.0.0.1";
}

bool means_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

}  // namespace

std::string Endpoint::text() const { return port == 0 ? host : fmt::format("{}:{}", host, port); }

int listen_at(const Endpoint& place) {
  const std::vector<Address> found = resolve(place);
  if (is_loopback(found.front()) && !means_loopback(place.host))
    fail(ORR_INVALID,
         "'{}' is this host alone to itself (127.0.0.0/8, see /etc/hosts), so that no other host "
         "could reach rank 0 there: give it by an address",
         place.host);
  int error = EADDRNOTAVAIL;
  for (const Address& a : found) {
    const int fd = new_socket(a);
    const int yes = 1;  // allows a port whose last connections are still in TIME_WAIT
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, a.get(), a.bytes) == 0 && listen(fd, SOMAXCONN) == 0) return fd;
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
  fail(ORR_FAILED, "cannot listen at {}: {}{}", place.text(), std::strerror(error),
       error == EMFILE ? " (see ulimit -n)" : "");
}

std::string own_address() {
  ifaddrs* all = nullptr;
  const ifaddrs* best = nullptr;
  if (getifaddrs(&all) != 0) return "127.0.0.1";
  for (const ifaddrs* a = all; a; a = a->ifa_next)
    if (is_of_a_network(*a) &&
        (!best || (best->ifa_addr->sa_family == AF_INET6 && a->ifa_addr->sa_family == AF_INET)))
      best = a;
  const std::string address =
      !best
          ? "127.0.0.1"
          : in_numbers(best->ifa_addr, best->ifa_addr->sa_family == AF_INET ? sizeof(sockaddr_in)
                                                                            : sizeof(sockaddr_in6));
  freeifaddrs(all);
  return address;
}

std::string choose_port() {
  if (const char* port = std::getenv("MASTER_PORT")) return port;
  uint32_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<uint32_t>(getpid());
  return std::to_string(20000 + number % 12000);
}

int connect_to(const Endpoint& place, int milliseconds) {
  int error = ECONNREFUSED;
  for (const Address& a : resolve(place)) {
    const int fd = new_socket(a);
    if (fd >= 0 && connect_within(fd, a, milliseconds)) {
      tune(fd);
      return fd;
    }
    error = errno;
    if (fd >= 0) close(fd);
  }
  errno = error;
  return -1;
}

// Setting these options fails on a Unix socket, which does not need them.
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
  if (getpeername(socket, reinterpret_cast<sockaddr*>(&address), &bytes) != 0 ||
      address.ss_family == AF_UNIX)
    return "127.0.0.1";
  return in_numbers(reinterpret_cast<sockaddr*>(&address), bytes);
}

uid_t peer_user(int socket) {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return static_cast<uid_t>(-1);
  return who.uid;
}

}  // namespace orrery
