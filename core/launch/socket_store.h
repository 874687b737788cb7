// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of the store: a connection to its server, and a thread that handles messages. The
// thread answers questions about the rank whatever the other threads do, so only a process that is
// stopped or dead does not answer.
#pragma once

#include <memory>
#include <string>

#include "launch/connection.h"
#include "launch/meeting_server.h"
#include "launch/store.h"

namespace orrery {

// The server of a store: "the launcher", or "rank 0", whose own process has the server.
struct StoreHost {
  const char* name;
  std::unique_ptr<Connection> connection;
  std::unique_ptr<MeetingServer> server = nullptr;
};

// If `launcher` is given, the rank reports its last error to that store, else to the store's
// server.
std::unique_ptr<Store> open_store(StoreHost host, int ranks, const std::string& job,
                                  std::unique_ptr<Store> launcher = nullptr);

}  // namespace orrery
