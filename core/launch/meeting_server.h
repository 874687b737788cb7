// SPDX-License-Identifier: Apache-2.0
//
// Rank 0's part of a meeting: a thread that lets the ranks in and serves their store.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "launch/store_server.h"

namespace orrery {

class MeetingServer {
 public:
  // Starts serving those who come to the door, a listening socket that it takes over: processes of
  // this user, or, with a token, whoever has it.
  MeetingServer(int door, int ranks, std::string token);
  ~MeetingServer();  // stops at once; the ranks see their connections end
  MeetingServer(const MeetingServer&) = delete;

 private:
  // Connected, rank not known yet.
  struct Visitor {
    std::unique_ptr<Connection> connection;
    std::string nonce;  // that it was challenged with
    std::chrono::steady_clock::time_point since;
  };
  void serve();
  void let_in();
  bool is_full() const;
  void show_out();
  void lose(int rank);
  bool hear(Visitor& visitor);
  bool is_friend(const Visitor& visitor, const Message& hello) const;
  std::string objection(const Message& hello) const;
  void admit(Visitor& visitor, const Message& hello);

  int ranks_;
  std::string token_;
  StoreServer store_;
  int door_, stop_ = -1;
  std::vector<Visitor> visitors_;
  std::thread thread_;
};

}  // namespace orrery
