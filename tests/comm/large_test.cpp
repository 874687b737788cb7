// SPDX-License-Identifier: Apache-2.0
//
// More bytes than an int can count: every operation that moves, and one that adds, on two ranks.
#include <gtest/gtest.h>
#include <sys/sysinfo.h>

#include <algorithm>

#include "check/comm/model.h"
#include "check/comm/peer.h"
#include "settings.h"

namespace comm_suite {
namespace {

constexpr int64_t large = (int64_t{1} << 31) + 4099;
#ifdef __SANITIZE_THREAD__
constexpr uint64_t shadows = 5;  // ThreadSanitizer notes four words for each
#else
constexpr uint64_t shadows = 1;
#endif
constexpr uint64_t needed = shadows * 12
                            << 30;  // two ranks, two buffers each, and what a library takes

// A rank's bytes: one block again and again, of a length that divides nothing.
const std::vector<char>& block(int rank) {
  static const std::vector<char> both[2] = {numbers(ORR_U8, 1, 1000003),
                                            numbers(ORR_U8, 2, 1000003)};
  return both[rank];
}

template <class F>
void each_block(int64_t n, int rank, F&& f) {
  const int64_t step = static_cast<int64_t>(block(rank).size());
  for (int64_t at = 0; at < n; at += step) f(at, static_cast<size_t>(std::min(step, n - at)));
}

void fill(const Slab& slab, int64_t at, int64_t n, int rank) {
  each_block(n, rank,
             [&](int64_t i, size_t m) { std::memcpy(slab.at(0) + at + i, block(rank).data(), m); });
}

void expect(const char* what, const Slab& slab, int64_t at, int64_t n, int rank) {
  each_block(n, rank, [&](int64_t i, size_t m) {
    if (std::memcmp(slab.at(0) + at + i, block(rank).data(), m) != 0)
      fail(ORR_FAILED, "{}: a byte from {} on of {} differs", what, i, n);
  });
}

orr_coll operation(int op, const Slab& send, const Slab& recv, int64_t n) {
  orr_coll c = Peer::make(op, ORR_U8);
  c.count = n;
  c.send = send.part(0, static_cast<uint64_t>(n));
  c.recv = recv.part(0, static_cast<uint64_t>(n));
  c.name = "large";
  return c;
}

void pass_on(Peer& peer, Slab& a, Slab& b) {
  const int me = peer.rank();
  fill(a, 0, large, me);
  orr_coll send = operation(ORR_COLL_SEND, a, b, large),
           recv = operation(ORR_COLL_RECV, a, b, large);
  send.root_or_peer = recv.root_or_peer = 1 - me;
  peer.post({send, recv});
  expect("send and recv", b, 0, large, 1 - me);
  peer.post(operation(ORR_COLL_BROADCAST, a, b, large));
  expect("broadcast", b, 0, large, 0);
}

void gather(Peer& peer, Slab& a, Slab& b) {
  const int me = peer.rank();
  const int64_t counts[] = {large - 1000, 1000};
  fill(a, 0, counts[me], me);
  orr_coll c = operation(ORR_COLL_ALL_GATHER, a, b, large);
  c.counts = counts;
  peer.post(c);
  expect("all_gather", b, 0, counts[0], 0);
  expect("all_gather", b, counts[0], counts[1], 1);
  c.op = ORR_COLL_ALL_TO_ALL;  // all of rank 0's goes to rank 1
  const int64_t out[2][2] = {{0, large}, {1000, 0}}, in[2][2] = {{0, 1000}, {large, 0}};
  fill(a, 0, me == 0 ? large : 1000, me);
  c.counts = out[me];
  c.recv_counts = in[me];
  peer.post(c);
  expect("all_to_all", b, 0, me == 0 ? 1000 : large, 1 - me);
}

void add(Peer& peer, Slab& a) {
  fill(a, 0, large, peer.rank());
  peer.post(operation(ORR_COLL_ALL_REDUCE, a, a, large));
  std::vector<char> sum(block(0));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<char>(sum[i] + block(1)[i]);
  each_block(large, 0, [&](int64_t i, size_t m) {
    if (std::memcmp(a.at(0) + i, sum.data(), m) != 0)
      fail(ORR_FAILED, "all_reduce: a byte from {} on differs", i);
  });
}

const Body beyond("beyond", [](const std::string& backend, const std::string&) {
  Peer peer(backend);
  Slab a(peer, false, large), b(peer, false, large);
  pass_on(peer, a, b);
  gather(peer, a, b);
  add(peer, a);
  return 0;
});

TEST_P(OnMain, CountsBeyondAnIntAreMoved) {
  struct sysinfo machine {};
  sysinfo(&machine);
  const uint64_t free = (machine.freeram + machine.bufferram) * machine.mem_unit;
  if (GetParam().hosts == "aabb") GTEST_SKIP() << "two ranks are on one host";
  if (free < needed) GTEST_SKIP() << "needs " << (needed >> 30) << " GiB of free memory";
  // Large pages: most of the time would go into the first touch of so many small ones.
  const auto outcome = run(GetParam(), 2, "beyond", "",
                           {"ORRERY_DEADLINE=60", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace comm_suite
