// SPDX-License-Identifier: Apache-2.0
//
// The messages between a worker and a server, over a group of these two ranks. The worker sends
// first. Requests and answers:
//
//   request push   numbers, then values        no answer
//   request pull   or end                      the version; if it is not -1, the weights
#pragma once

#include <cstddef>

#include <orrery/sdk/driver.hpp>

#include "arrivals.h"

namespace server {

struct Request {
  int64_t kind, clock, read;  // Arrival::Kind; steps done before; version that a push's weights had
};

// One end of the connection. Only one thread uses it.
class Channel {
 public:
  // `group` contains this rank and `other`, in the order of their ranks.
  Channel(const orr_driver_host& host, int32_t group, int other)
      : host_(host), group_(group), peer_(host.rank < other ? 1 : 0) {}
  void send(const void* bytes, size_t count, const char* what) const {
    move(ORR_COLL_SEND, const_cast<void*>(bytes), count, what);
  }
  void recv(void* bytes, size_t count, const char* what) const {
    move(ORR_COLL_RECV, bytes, count, what);
  }

 private:
  void move(int32_t op, void* bytes, size_t count, const char* what) const {
    orr_memory memory{};
    memory.size = sizeof memory, memory.tier = ORR_TIER_HOST;
    memory.bytes = count, memory.host = bytes;
    orr::copy_text(memory.native_kind, "host");
    orr_coll c{};
    c.size = sizeof c, c.op = op, c.dtype = ORR_U8, c.name = what, c.where = host_.where;
    c.root_or_peer = peer_, c.count = static_cast<int64_t>(count);
    (op == ORR_COLL_SEND ? c.send : c.recv) = {&memory, 0, count};
    orr::check(host_.post(host_.self, group_, &c, 1));
  }

  const orr_driver_host& host_;
  int32_t group_, peer_;
};

}  // namespace server
