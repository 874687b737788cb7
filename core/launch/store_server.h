// SPDX-License-Identifier: Apache-2.0
//
// What the server of a store knows: the table, the questions that wait for a key, and of each rank
// whether it has come, has left, has ended and as the how-manieth, and the sentence that it has
// ended with. Whoever waits is told of an end after all that the rank has said before it. [one
// thread at a time]
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "launch/connection.h"
#include "launch/wire.h"

namespace orrery {

class StoreServer {
 public:
  explicit StoreServer(int ranks) : ranks_(ranks) {}
  StoreServer(const StoreServer&) = delete;

  // Takes over the connection of a rank that has none.
  void adopt(int rank, std::unique_ptr<Connection> connection);
  const Connection* connection_of(int rank) const { return ranks_[rank].connection.get(); }
  // Reads and answers what the rank has sent; false once it has no connection any more.
  bool serve(int rank);
  // Tells all ranks, and those who come later, why they are to end; the first reason counts.
  void blame(const std::string& why);
  // Serves what the rank has said, then tells all that it has ended.
  void mark_ended(int rank);
  // The sentence that the rank has reported, or "".
  const std::string& reported(int rank) const { return ranks_[rank].report; }
  // Whether the rank has said that it ends its connection.
  bool left(int rank) const { return ranks_[rank].left; }

 private:
  struct Question {
    int rank;
    uint32_t id;
  };
  struct Rank {
    std::unique_ptr<Connection> connection;
    int ended = 0;  // how many had, when it did
    bool left = false;
    std::string report;
    std::vector<Question> curious;  // who has asked what this rank does
  };
  void handle(int rank, const Message& message);
  void put(const std::string& key, const std::string& value);
  void answer(const Question& q, wire::Kind kind, const std::string& value);
  void look_up(const Question& q, const std::string& key);
  void pass_on(const Question& q, const std::string& about);
  void tell_all(wire::Kind kind, int id, const std::string& value);

  std::vector<Rank> ranks_;
  std::map<std::string, std::string> table_;
  std::map<std::string, std::vector<Question>> waiting_;
  int ended_ = 0;       // ranks
  std::string blamed_;  // why all are to end, or ""
};

}  // namespace orrery
