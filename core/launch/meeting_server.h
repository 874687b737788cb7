// SPDX-License-Identifier: Apache-2.0
//
// A thread that accepts the ranks of a job and serves their store. Our launcher has one, or rank 0.
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
  // How the server learns that a rank has ended. are_told: the launcher calls mark_ended.
  // are_seen: the rank's connection ends.
  enum class Ends { are_told, are_seen };

  // Serves processes that connect to the place and are of this user, or, between hosts, have the
  // token.
  MeetingServer(const Endpoint& place, int ranks, std::string token, Ends ends);
  ~MeetingServer();  // stops at once; the ranks see their connections end
  MeetingServer(const MeetingServer&) = delete;

  // Tells all ranks why they are to end, unless a rank has said so already. [any thread]
  void blame(const Error& why);
  // Tells all ranks that this one has ended. [any thread]
  void mark_ended(int rank);
  // Handles the messages that ranks sent before they ended, then stops serving.
  void stop();
  // The sentence that the rank has reported, or "". REQUIRES: stop.
  const std::string& reported(int rank) const { return store_.reported(rank); }

 private:
  // A process that has connected, and whose rank is not known yet.
  struct Visitor {
    std::unique_ptr<Connection> connection;
    std::string nonce;  // of the challenge that was sent to it
    std::chrono::steady_clock::time_point since;
  };
  void serve();
  bool await();
  void accept_visitor();
  bool is_full() const;
  void drop_late_visitors();
  void lose(int rank);
  bool read_visitor(Visitor& visitor);
  std::string objection(const Visitor& visitor, const Message& hello) const;

  const Endpoint place_;
  const int ranks_;
  const std::string token_;
  const Ends ends_;
  std::mutex mutex_;  // protects store_ and visitors_
  StoreServer store_;
  std::vector<Visitor> visitors_;
  int listener_ = -1, stop_ = -1;
  std::thread thread_;
};

}  // namespace orrery
