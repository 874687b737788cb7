// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "exchange.h"

namespace shared {
namespace {

// What a rank gets from each rank and gives to each, in bytes.
struct Pieces {
  std::vector<int64_t> in, out;
};

Pieces pieces_of(const orr_coll& c, int rank, int ranks) {
  const int64_t unit = orr_dtype_bytes(c.dtype);
  Pieces p{std::vector<int64_t>(ranks, 0), std::vector<int64_t>(ranks, 0)};
  for (int r = 0; r < ranks; ++r) {
    if (c.op == ORR_COLL_BROADCAST) {
      p.in[r] = r == c.root_or_peer ? c.count * unit : 0;
      p.out[r] = rank == c.root_or_peer ? c.count * unit : 0;
    } else if (c.op == ORR_COLL_ALL_GATHER) {
      p.in[r] = c.counts[r] * unit;
      p.out[r] = c.counts[rank] * unit;
    } else {
      p.in[r] = c.recv_counts[r] * unit;
      p.out[r] = c.counts[r] * unit;
    }
  }
  return p;
}

}  // namespace

void move(const orr_coll& c, int rank, int ranks, Messenger& messenger) {
  const Pieces p = pieces_of(c, rank, ranks);
  char* from = c.send.memory ? orr::data<char>(c.send) : nullptr;
  char* to = c.recv.memory ? orr::data<char>(c.recv) : nullptr;
  const bool same = c.op != ORR_COLL_ALL_TO_ALL;  // all get the same bytes
  int64_t given = 0, got = 0;
  for (int64_t bytes : p.out) given = same ? bytes : given + bytes;
  for (int64_t bytes : p.in) got += bytes;
  std::vector<char> copy;  // of what is to be sent, where receiving would overwrite it
  if (!same && given > 0 && got > 0 && from < to + got && to < from + given) {
    copy.assign(from, from + given);
    from = copy.data();
  }
  std::vector<Message> sends, recvs;
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) {
      if (to && p.in[r] > 0 && from != to) std::memmove(to, from, p.in[r]);
    } else {
      if (p.out[r] > 0) sends.push_back({r, from, p.out[r]});
      if (p.in[r] > 0) recvs.push_back({r, to, p.in[r]});
    }
    if (!same) from += p.out[r];
    if (to) to += p.in[r];
  }
  messenger.exchange(sends, recvs);
}

}  // namespace shared
