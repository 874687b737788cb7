// SPDX-License-Identifier: Apache-2.0
//
// Frames over a connected stream socket.
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
  explicit Connection(int socket) : socket_(socket) {}  // takes it over
  ~Connection();
  Connection(const Connection&) = delete;

  int socket() const { return socket_; }
  // The next message that has come; false when there is none yet. Never blocks.
  bool receive(Message& message);
  // Whether the other side has gone, or has said what is no message.
  bool at_end() const { return at_end_; }
  // Sends what the socket takes at once and keeps the rest for flush. Never blocks.
  void send(wire::Kind kind, uint32_t id, const std::string& key, const std::string& value);
  void flush();
  bool has_unsent() const { return !unsent_.empty(); }
  // Whether nobody takes what is sent.
  bool is_broken() const { return broken_; }
  // From now on a larger message ends the connection.
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
