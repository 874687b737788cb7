// SPDX-License-Identifier: Apache-2.0
//
// Stream sockets between hosts, and between processes of one host. Whoever listens does so at one
// address of its host, never at all.
#pragma once

#include <sys/types.h>

#include <string>

namespace orrery {

// A host by name or number, and a port. Without a port it is a name that only this host knows, and
// no file bears (an abstract Unix socket): nothing is left behind whoever is killed when.
struct Endpoint {
  std::string host;
  int port = 0;
  std::string text() const;  // "n01:15812"
};

// A listening socket. Throws Error when the host is not this one, or the place is taken, and also
// where the name leads nobody else here: many hosts call themselves 127.0.1.1.
int listen_at(const Endpoint& place);
// A connected socket, or -1 with errno when nobody listens or answers within the time. Throws Error
// when there is no such host.
int connect_to(const Endpoint& place, int milliseconds);
// An accepted connection: small messages leave at once, and a host that vanishes is noticed.
void tune(int socket);
// The other side's address, in numbers; 127.0.0.1 for a socket that leaves no host.
std::string peer_address(int socket);
// The user whose process is at the other end of a socket of this host, as the kernel knows it; -1
// when it does not.
uid_t peer_user(int socket);

}  // namespace orrery
