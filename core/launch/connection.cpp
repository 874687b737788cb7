// SPDX-License-Identifier: Apache-2.0
#include "launch/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace orrery {
namespace {

bool is_patient(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Connection::~Connection() { close(socket_); }

// Takes the first message from the received bytes; false if it is not complete yet.
bool Connection::cut(Message& message) {
  if (received_.size() < sizeof(wire::Frame)) return false;
  wire::Frame frame;
  std::memcpy(&frame, received_.data(), sizeof frame);
  const uint64_t whole = sizeof frame + uint64_t{frame.key_bytes} + frame.value_bytes;
  at_end_ = whole > most_;
  if (at_end_ || received_.size() < whole) return false;
  message.frame = frame;
  message.key = received_.substr(sizeof frame, frame.key_bytes);
  message.value = received_.substr(sizeof frame + frame.key_bytes, frame.value_bytes);
  received_.erase(0, whole);
  return true;
}

bool Connection::receive(Message& message) {
  char buffer[1 << 16];
  while (!at_end_) {
    if (cut(message)) return true;
    if (at_end_) break;
    const ssize_t n = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && is_patient(errno)) return false;
    if (n <= 0)
      at_end_ = true;
    else
      received_.append(buffer, static_cast<size_t>(n));
  }
  return false;
}

void Connection::send(wire::Kind kind, uint32_t id, const std::string& key,
                      const std::string& value) {
  const wire::Frame frame{kind, id, static_cast<uint32_t>(key.size()),
                          static_cast<uint32_t>(value.size())};
  unsent_.append(reinterpret_cast<const char*>(&frame), sizeof frame);
  unsent_ += key + value;
  flush();
}

// If the peer is gone, unsent bytes are dropped. What the peer has sent before can still be read.
void Connection::flush() {
  while (!unsent_.empty()) {
    const ssize_t n = ::send(socket_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && is_patient(errno)) return;
    if (n < 0) {
      broken_ = true;
      return unsent_.clear();
    }
    unsent_.erase(0, static_cast<size_t>(n));
  }
}

}  // namespace orrery
