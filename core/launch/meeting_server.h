// SPDX-License-Identifier: Apache-2.0
//
// A thread that lets the ranks of a job in and serves their store: our launcher's, or rank 0's.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "launch/socket.h"
#include "launch/store_server.h"

namespace orrery {

class MeetingServer {
 public:
  // Whether somebody else sees the ranks end and says so, or the end of a rank's connection is all
  // that tells.
  enum class Ends { are_told, are_seen };

  // Serves those who come to the place: processes of this user, or, between hosts, whoever has the
  // token.
  MeetingServer(const Endpoint& place, int ranks, std::string token, Ends ends);
  ~MeetingServer();  // stops at once; the ranks see their connections end
  MeetingServer(const MeetingServer&) = delete;

  // Tells all why they are to end, unless a rank has said so already. [any thread]
  void blame(const Error& why);
  // Tells all that the rank has ended. [any thread]
  void mark_ended(int rank);
  // Hears what ranks that have ended still had to say, and serves no more.
  void stop();
  // The sentence that the rank has reported, or "". REQUIRES: stop.
  const std::string& reported(int rank) const { return store_.reported(rank); }

 private:
  // Connected, rank not known yet.
  struct Visitor {
    std::unique_ptr<Connection> connection;
    std::string nonce;  // that it was challenged with
    std::chrono::steady_clock::time_point since;
  };
  void serve();
  bool await();
  void let_in();
  bool is_full() const;
  void show_out();
  void lose(int rank);
  bool hear(Visitor& visitor);
  std::string objection(const Visitor& visitor, const Message& hello) const;

  const Endpoint place_;
  const int ranks_;
  const std::string token_;
  const Ends ends_;
  std::mutex mutex_;  // of all that follows but the descriptors
  StoreServer store_;
  std::vector<Visitor> visitors_;
  int listener_ = -1, stop_ = -1;
  std::thread thread_;
};

}  // namespace orrery
