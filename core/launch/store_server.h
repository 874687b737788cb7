// SPDX-License-Identifier: Apache-2.0
//
// The data of a store's server: the table, the questions that wait for a key, and for each rank its
// connection, whether and in which order it has ended, and the error that it has reported. Messages
// that a rank has sent before its end are handled before others are told of the end. [one thread at
// a time]
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

  // Takes the connection of a rank, which had none before.
  void adopt(int rank, std::unique_ptr<Connection> connection);
  const Connection* connection_of(int rank) const { return ranks_[rank].connection.get(); }
  // Handles the messages that the rank has sent. Returns false if it has no connection any more.
  bool serve(int rank);
  // Tells all ranks, and those who come later, why they are to end; the first reason counts.
  void blame(const std::string& why);
  // Handles the rank's last messages, then tells all ranks that it has ended.
  void mark_ended(int rank);
  // The error that the rank has reported, or "".
  const std::string& reported(int rank) const { return ranks_[rank].report; }
  // Whether the rank has announced that it ends its connection.
  bool left(int rank) const { return ranks_[rank].left; }

 private:
  struct Question {
    int rank;
    uint32_t id;
  };
  struct Rank {
    std::unique_ptr<Connection> connection;
    int ended = 0;  // its number in the order of ends, from 1; 0: it has not ended
    bool left = false;
    std::string report;
    std::vector<Question> curious;  // open questions about what this rank is doing
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
  int ended_ = 0;       // how many ranks have ended
  std::string blamed_;  // why all are to end, or ""
};

}  // namespace orrery
