// SPDX-License-Identifier: Apache-2.0
#include "run/line.h"

#include "job/host_buffer.h"

namespace orrery {

Line::Line(WorldComm& comm, int group, const std::string& where)
    : post_(comm.direct(group)), peer_(1 - comm.rank(group)), where_(where) {}

void Line::send(const void* bytes, size_t count, const char* what) const {
  move(ORR_COLL_SEND, const_cast<void*>(bytes), count, what);
}

void Line::recv(void* bytes, size_t count, const char* what) const {
  move(ORR_COLL_RECV, bytes, count, what);
}

void Line::move(int32_t op, void* bytes, size_t count, const char* what) const {
  const HostBuffer buffer(bytes, count);
  orr_coll c = collective(op, ORR_U8, what, where_);
  c.root_or_peer = peer_, c.count = static_cast<int64_t>(count);
  (op == ORR_COLL_SEND ? c.send : c.recv) = buffer.all();
  post_({c});
}

}  // namespace orrery
