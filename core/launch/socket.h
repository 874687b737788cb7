// SPDX-License-Identifier: Apache-2.0
//
// Stream sockets between hosts, and between processes of one host. A listening socket is bound to
// one address of the host, never to all.
#pragma once

#include <sys/types.h>

#include <string>

namespace orrery {

// A host by name or number, and a port. Without a port, `host` is the name of an abstract Unix
// socket of this host, which has no file that a killed process could leave behind.
struct Endpoint {
  std::string host;
  int port = 0;
  std::string text() const;  // "n01:15812"
};

// Returns a listening socket. Throws Error if the host is not this one, the place is taken, or
// other hosts cannot reach the address: many hosts resolve their own name to 127.0.1.1.
int listen_at(const Endpoint& place);
// The first address of this host, in numbers, at which other hosts may reach it; loopback's if it
// has none.
std::string own_address();
// MASTER_PORT, or a random port below the range from which systems choose ports for outgoing
// connections.
std::string choose_port();
// Returns a connected socket, or -1 with errno if no process listens or answers within the time.
// Throws Error if there is no such host.
int connect_to(const Endpoint& place, int milliseconds);
// Sets options of a connection: small messages are sent at once, and the loss of a host is noticed.
void tune(int socket);
// The peer's address in numbers; 127.0.0.1 for a Unix socket.
std::string peer_address(int socket);
// The user of the process at the other end of a Unix socket, by the kernel; -1 if it is not known.
uid_t peer_user(int socket);

}  // namespace orrery
