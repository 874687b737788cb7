// SPDX-License-Identifier: Apache-2.0
//
// Sends and receives messages over a connected stream socket.
#pragma once

#include <cstddef>
#include <string>

#include "launch/wire.h"

namespace orrery {

struct Message {
  wire::Frame frame{};
  std::string key, value;
};

// [one thread at a time]
class Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}  // owns the socket from now on
  ~Connection();
  Connection(const Connection&) = delete;

  int socket() const { return socket_; }
  // The next message that has come; false when there is none yet. Never blocks.
  bool receive(Message& message);
  // Whether the peer has closed the connection, or has sent bytes that are no message.
  bool at_end() const { return at_end_; }
  // Sends a message. Bytes that the socket does not take at once are kept for flush. Never blocks.
  void send(wire::Kind kind, uint32_t id, const std::string& key, const std::string& value);
  void flush();
  bool has_unsent() const { return !unsent_.empty(); }
  // Whether sending has failed, because the peer is gone.
  bool is_broken() const { return broken_; }
  // Sets the largest message that the peer may send; a larger one ends the connection.
  void limit(size_t bytes) { most_ = bytes; }

 private:
  bool cut(Message& message);

  int socket_;
  bool at_end_ = false, broken_ = false;
  size_t most_ = wire::max_message;
  std::string received_;
  std::string unsent_;
};

}  // namespace orrery
