// SPDX-License-Identifier: Apache-2.0
#include "channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include "ring.h"

namespace local {

uint64_t RingChannel::write(const iovec* parts, int n) {
  const uint64_t begin = out_.head.load(std::memory_order_relaxed);
  const uint64_t end = out_.tail.load(std::memory_order_acquire) + ring_bytes;
  uint64_t head = begin;
  for (int i = 0; i < n && head < end; ++i) {
    const uint64_t room = std::min<uint64_t>(parts[i].iov_len, end - head);
    ring_write(out_, head, parts[i].iov_base, room);
    head += room;
  }
  out_.head.store(head, std::memory_order_release);
  return head - begin;
}

uint64_t RingChannel::read(void* to, uint64_t n) {
  const uint64_t tail = in_.tail.load(std::memory_order_relaxed);
  const uint64_t here = std::min(n, in_.head.load(std::memory_order_acquire) - tail);
  ring_read(in_, tail, to, here);
  in_.tail.store(tail + here, std::memory_order_release);
  return here;
}

SocketChannel::~SocketChannel() { close(socket_); }

uint64_t SocketChannel::write(const iovec* parts, int n) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<size_t>(n);
  const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent > 0 ? static_cast<uint64_t>(sent) : 0;
}

uint64_t SocketChannel::read(void* to, uint64_t n) {
  const ssize_t got = recv(socket_, to, n, MSG_DONTWAIT);
  return got > 0 ? static_cast<uint64_t>(got) : 0;
}

}  // namespace local
