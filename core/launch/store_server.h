// SPDX-License-Identifier: Apache-2.0
//
// The serving side of the store: the table, the questions that wait for a key, the page of the
// dead, and the sentence that each rank has ended with. [one thread: the launcher's, or the
// meeting's]
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
  explicit StoreServer(int ranks);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;

  // Makes a socket pair for the rank, whose process will inherit rank_end.
  void invite(int rank);
  // Takes over the connection of a rank that has none.
  void adopt(int rank, std::unique_ptr<Connection> connection);
  // A rank that has gone: closes its connection, and the page says so.
  void drop(int rank);

  int server_end(int rank) const;  // -1: no connection
  // Whether there is something to send that the connection did not take yet.
  bool has_unsent(int rank) const { return ends_[rank].server && ends_[rank].server->has_unsent(); }
  int rank_end(int rank) const { return ends_[rank].client; }
  int board() const { return board_fd_; }
  // Closes the ends that ranks have inherited.
  void started();

  // Reads and answers what the rank has sent; false at its end of file.
  bool serve(int rank);
  void mark_ended(int rank);
  const std::string& last_words(int rank) const { return words_[rank]; }
  // Whether the rank has said that it ends its connection.
  bool left(int rank) const { return ends_[rank].left; }

 private:
  struct Question {
    int rank;
    uint32_t id;
  };
  struct Ends {
    std::unique_ptr<Connection> server;
    int client = -1;
    bool left = false;
    std::vector<Question> curious;  // who has asked what this rank does
  };
  void handle(int rank, const Message& message);
  void put(const std::string& key, const std::string& value);
  void answer(const Question& q, const std::string& value);
  void tell_ended(int rank, int about);
  void pass_on(const Question& q, const std::string& about);

  std::vector<Ends> ends_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> table_;
  std::map<std::string, std::vector<Question>> waiting_;
  int board_fd_ = -1;
  uint16_t ended_ = 0;  // ranks
  bool blamed_ = false;
  wire::Board* board_ = nullptr;
};

}  // namespace orrery
