// SPDX-License-Identifier: Apache-2.0
#include "launch/local_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/error.h"

namespace orrery {
namespace {

struct Address {
  sockaddr_un un{};
  socklen_t bytes = 0;
};

Address address_of(const std::string& name) {
  Address a;
  a.un.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof a.un.sun_path)
    fail(ORR_INVALID, "the ranks cannot meet at '{}': a name has at most {} characters", name,
         sizeof a.un.sun_path - 1);
  std::memcpy(a.un.sun_path + 1, name.data(), name.size());  // byte 0 is NUL: no file
  a.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return a;
}

int new_socket(int more) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | more, 0);
  if (fd < 0) fail(ORR_FAILED, "no socket: {} (see ulimit -n)", std::strerror(errno));
  return fd;
}

}  // namespace

int listen_at(const std::string& name) {
  const Address a = address_of(name);
  const int fd = new_socket(SOCK_NONBLOCK);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&a.un), a.bytes) == 0 &&
      listen(fd, SOMAXCONN) == 0)
    return fd;
  const int error = errno;
  close(fd);
  if (error == EADDRINUSE)
    fail(ORR_UNAVAILABLE,
         "another process is rank 0 at '{}': give this job a MASTER_PORT of its own", name);
  fail(ORR_FAILED, "rank 0 cannot listen at '{}': {}", name, std::strerror(error));
}

int connect_to(const std::string& name) {
  const Address a = address_of(name);
  const int fd = new_socket(0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&a.un), a.bytes) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

uid_t peer_user(int socket) {
  ucred who{};
  socklen_t bytes = sizeof who;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) != 0) return static_cast<uid_t>(-1);
  return who.uid;
}

}  // namespace orrery
