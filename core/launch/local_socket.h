// SPDX-License-Identifier: Apache-2.0
//
// Packet sockets between processes of one host, at names without a file (abstract Unix sockets).
#pragma once

#include <sys/types.h>

#include <string>

namespace orrery {

// A listening socket. Throws Error when the name is taken.
int listen_at(const std::string& name);
// A connected socket, or -1 with errno when nobody listens.
int connect_to(const std::string& name);
// The user whose process is at the other end, as the kernel knows it; -1 when it does not.
uid_t peer_user(int socket);

}  // namespace orrery
