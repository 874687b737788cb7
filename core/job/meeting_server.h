// SPDX-License-Identifier: Apache-2.0
//
// Rank 0's part of a meeting: a thread that lets the ranks in and serves their store.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "job/store_server.h"

namespace orrery {

class MeetingServer {
 public:
  // Opens the place and starts serving. Throws Error when another job is there.
  MeetingServer(const std::string& place, int ranks);
  ~MeetingServer();  // stops at once; the ranks see their connections end
  MeetingServer(const MeetingServer&) = delete;

 private:
  void serve();
  void let_in();
  void lose(int rank);
  bool hear(int visitor);
  bool admit(int visitor, const wire::Frame& hello, const std::string& size);

  int ranks_;
  StoreServer store_;
  int door_ = -1, stop_ = -1;
  std::vector<int> visitors_;  // connected, rank not known yet
  std::thread thread_;
};

}  // namespace orrery
