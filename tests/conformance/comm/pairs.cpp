// SPDX-License-Identifier: Apache-2.0
//
// Send and recv: sizes beyond the ring, groups that cross, tags out of order, registered memory.
#include "conformance/comm/bodies.h"

#include <algorithm>

#include "conformance/comm/model.h"
#include "conformance/comm/peer.h"

namespace comm_suite {
namespace {

orr_coll pair_op(int op, int peer, int tag, orr_buffer b, int64_t count) {
  orr_coll c = Peer::make(op);
  c.root_or_peer = peer;
  c.tag = tag;
  (op == ORR_COLL_SEND ? c.send : c.recv) = b;
  c.count = count;
  c.name = "pair";
  return c;
}

void expect(const Slab& slab, uint64_t at, uint64_t sequence, int64_t n) {
  const Bytes want = numbers(ORR_F32, sequence, n);
  if (!std::equal(want.begin(), want.end(), slab.at(at)))
    fail(ORR_FAILED, "message {} of {} elements arrived altered", sequence, n);
}

void fill(const Slab& slab, uint64_t at, uint64_t sequence, int64_t n) {
  const Bytes data = numbers(ORR_F32, sequence, n);
  std::copy(data.begin(), data.end(), slab.at(at));
}

// Everyone sends to its right and receives from its left in one group: no order of starts may
// block.
void shift_around(Peer& peer, Slab& slab, int64_t n) {
  const int P = peer.size(), me = peer.rank();
  const uint64_t bytes = static_cast<uint64_t>(n) * 4, to = 4 << 20;
  fill(slab, 0, me, n);
  const uint64_t before = peer.api.bytes_sent(peer.comm);
  peer.post({pair_op(ORR_COLL_SEND, (me + 1) % P, 5, slab.part(0, bytes), n),
             pair_op(ORR_COLL_RECV, (me + P - 1) % P, 5, slab.part(to, bytes), n)});
  expect(slab, to, (me + P - 1) % P, n);
  const uint64_t sent = peer.api.bytes_sent(peer.comm) - before, want = P > 1 ? bytes : 0;
  if (sent != want) fail(ORR_FAILED, "counted {} bytes sent, not {}", sent, want);
}

// Rank 0 sends tags 1 to `last` to rank 1, which wants the last by itself and then the others
// together; in the order of sending where the backend asks for that.
void tags(Peer& peer, Slab& slab, int last, int64_t n) {
  const uint64_t bytes = static_cast<uint64_t>(n) * 4;
  const auto ops = [&](int op, int other, int from, int to) {
    std::vector<orr_coll> group;
    for (int tag = from; tag <= to; ++tag)
      group.push_back(pair_op(op, other, tag, slab.part(tag * bytes, bytes), n));
    return group;
  };
  const auto receive = [&](int from, int to) {
    peer.post(ops(ORR_COLL_RECV, 0, from, to));
    for (int tag = from; tag <= to; ++tag) expect(slab, tag * bytes, tag, n);
  };
  if (peer.rank() == 0) {
    for (int tag = 1; tag <= last; ++tag) fill(slab, tag * bytes, tag, n);
    peer.post(ops(ORR_COLL_SEND, 1, 1, last));
  } else if (peer.rank() == 1) {
    const bool ordered = peer.has(ORR_COMM_PAIR_ORDER);
    if (!ordered) receive(last, last);
    receive(1, ordered ? last : last - 1);
  }
  peer.barrier();
}

// More messages than a ring has room for, short ones of all sizes among longer ones; the receiver
// takes them one by one.
void flood(Peer& peer, Slab& slab) {
  constexpr int messages = 60;
  const auto length = [](int i) { return int64_t{i % 4 == 3 ? 3000 : 0} + 3 * i; };
  const auto part = [&](int64_t n) { return slab.part(0, static_cast<uint64_t>(n) * 4); };
  if (peer.rank() == 0) {
    std::vector<orr_coll> group;
    uint64_t at = 0;
    for (int i = 0; i < messages; ++i) {
      const uint64_t bytes = static_cast<uint64_t>(length(i)) * 4;
      fill(slab, at, i, length(i));
      group.push_back(pair_op(ORR_COLL_SEND, 1, 1, slab.part(at, bytes), length(i)));
      at += bytes;
    }
    peer.post(group);
  } else if (peer.rank() == 1) {
    for (int i = 0; i < messages; ++i) {
      peer.post(pair_op(ORR_COLL_RECV, 0, 1, part(length(i)), length(i)));
      expect(slab, 0, i, length(i));
    }
  }
  peer.barrier();
}

int pairs(const std::string& backend, const std::string&) {
  Peer peer(backend);
  for (bool registered : peer.places()) {
    Slab slab(peer, registered, 8 << 20);
    for (int64_t n : {0, 1, 1000, 8192, 16384, 300000, 1 << 20}) shift_around(peer, slab, n);
    for (int64_t n : {10, 60000}) tags(peer, slab, 3, n);
    tags(peer, slab, 50, 5000);
    flood(peer, slab);
  }
  return 0;
}

// A server's day: requests of whoever comes, short and long, each answered to its sender.
int any_source(const std::string& backend, const std::string&) {
  Peer peer(backend);
  if (!peer.has(ORR_COMM_ANY_SOURCE)) return 0;
  const int P = peer.size(), me = peer.rank(), rounds = 20;
  Slab slab(peer, false, 8 << 20);
  for (int64_t n : {3, 70000}) {
    const uint64_t bytes = static_cast<uint64_t>(n) * 4;
    for (int i = 0; me == 0 && i < rounds * (P - 1); ++i) {
      int32_t from = -1;
      orr_coll request = pair_op(ORR_COLL_RECV, -1, 7, slab.part(0, bytes), n);
      request.source = &from;
      peer.post(request);
      if (from < 1 || from >= P) fail(ORR_FAILED, "rank {} has sent", from);
      expect(slab, 0, from, n);
      peer.post(pair_op(ORR_COLL_SEND, from, 8, slab.part(0, bytes), n));
    }
    for (int i = 0; me > 0 && i < rounds; ++i) {
      fill(slab, 0, me, n);
      peer.post(pair_op(ORR_COLL_SEND, 0, 7, slab.part(0, bytes), n));
      std::memset(slab.at(0), 0, bytes);
      peer.post(pair_op(ORR_COLL_RECV, 0, 8, slab.part(0, bytes), n));
      expect(slab, 0, me, n);
    }
    peer.barrier();
  }
  return 0;
}

// Where tags do not select they still have to agree.
int unequal_tags(const std::string& backend, const std::string&) {
  Peer peer(backend);
  if (!peer.has(ORR_COMM_PAIR_ORDER)) fail(ORR_UNIMPLEMENTED, "tags select");
  Slab slab(peer, false, 64);
  const int op = peer.rank() == 0 ? ORR_COLL_SEND : ORR_COLL_RECV;
  peer.post(pair_op(op, 1 - peer.rank(), 5 + peer.rank(), slab.part(0, 16), 4));
  peer.barrier();
  return 0;
}

}  // namespace

std::vector<NamedBody> pair_bodies() {
  return {{"pairs", pairs}, {"any source", any_source}, {"unequal tags", unequal_tags}};
}

}  // namespace comm_suite
