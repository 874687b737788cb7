// SPDX-License-Identifier: Apache-2.0
//
// A rank's side of the store: a connection to whoever serves it, and a thread that takes what
// comes. It answers for the rank whatever the others of this process do: only a process that is
// stopped, or dead, does not.
#pragma once

#include <memory>
#include <string>

#include "launch/connection.h"
#include "launch/meeting_server.h"
#include "launch/store.h"

namespace orrery {

// Who serves a store: "the launcher", or "rank 0", which has the server in its own process.
struct StoreHost {
  const char* name;
  std::unique_ptr<Connection> connection;
  std::unique_ptr<MeetingServer> server = nullptr;
};

// The sentence that this rank ends with is reported to `launcher` where there is one, else to the
// store's own server.
std::unique_ptr<Store> open_store(StoreHost host, int ranks, const std::string& job,
                                  std::unique_ptr<Store> launcher = nullptr);

}  // namespace orrery
