// SPDX-License-Identifier: Apache-2.0
//
// A stream of bytes to one peer and back: the shared rings of two ranks on one host, a socket
// between hosts. Nothing here waits.
#pragma once

#include <sys/uio.h>

#include <cstdint>

#include "segment.h"

namespace local {

class Channel {
 public:
  virtual ~Channel() = default;
  // Takes as many bytes as there is room for and says how many.
  virtual uint64_t write(const iovec* parts, int n) = 0;
  // Gives as many as have come, up to n. A peer that has gone sends no more: its notes tell.
  virtual uint64_t read(void* to, uint64_t n) = 0;
  // To poll, or -1.
  virtual int socket() const = 0;
};

class RingChannel : public Channel {
 public:
  RingChannel(Ring& out, Ring& in) : out_(out), in_(in) {}
  uint64_t write(const iovec* parts, int n) override;
  uint64_t read(void* to, uint64_t n) override;
  int socket() const override { return -1; }

 private:
  Ring &out_, &in_;
};

class SocketChannel : public Channel {
 public:
  explicit SocketChannel(int socket) : socket_(socket) {}  // takes it over
  ~SocketChannel() override;
  uint64_t write(const iovec* parts, int n) override;
  uint64_t read(void* to, uint64_t n) override;
  int socket() const override { return socket_; }

 private:
  int socket_;
};

}  // namespace local
