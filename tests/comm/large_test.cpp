// SPDX-License-Identifier: Apache-2.0
//
// More bytes than an int can count: every operation that moves, and one that adds, on two ranks.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "conformance/comm/model.h"
#include "conformance/comm/peer.h"
#include "settings.h"

namespace comm_suite {
namespace {

constexpr int64_t large = (int64_t{1} << 31) + 4099;
#ifdef __SANITIZE_THREAD__
constexpr uint64_t shadows = 5;  // ThreadSanitizer notes four words for each
#else
constexpr uint64_t shadows = 1;
#endif
constexpr uint64_t needed = shadows * 8
                            << 30;  // two ranks, a buffer each, and what a library takes

// A rank's bytes are one block again and again, of a length that divides no power of two.
constexpr int64_t period = 4096 * 1009;
Bytes block(int rank) {
  static const Bytes both[2] = {numbers(ORR_U8, 1, period), numbers(ORR_U8, 2, period)};
  return both[rank];
}

// Memory to read, of which only one block exists.
class Repeated {
 public:
  explicit Repeated(Bytes bytes) {
    const int file = memfd_create("block", 0);
    if (write(file, bytes.data(), bytes.size()) != period) fail(ORR_FAILED, "no block");
    char* const base = static_cast<char*>(
        mmap(nullptr, large + period, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (int64_t at = 0; at < large; at += period)
      if (mmap(base + at, period, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
          MAP_FAILED)
        fail(ORR_FAILED, "no memory: {}", std::strerror(errno));
    close(file);
    memory_.size = sizeof memory_;
    memory_.bytes = large;
    memory_.host = base;
  }
  Repeated(const Repeated&) = delete;
  orr_buffer part(uint64_t offset, uint64_t bytes) const { return {&memory_, offset, bytes}; }

 private:
  orr_memory memory_{};
};

// Places that are looked at: some bytes of every few pages, and the first and last thousands.
template <class F>
void each_spot(int64_t n, F&& f) {
  for (int64_t at = 0; at < n; at += at < 4096 || n - at < 20000 ? 1 : 16381)
    for (int64_t i = at; i < std::min(at + 64, n); ++i) f(i);
}

void spoil(const Slab& slab) {
  each_spot(large, [&](int64_t i) { *slab.at(static_cast<uint64_t>(i)) ^= 0x55; });
}

void expect(const char* what, const Slab& slab, int64_t at, int64_t n, Bytes wanted) {
  each_spot(n, [&](int64_t i) {
    if (*slab.at(static_cast<uint64_t>(at + i)) != wanted[static_cast<size_t>(i % period)])
      fail(ORR_FAILED, "{}: byte {} of {} differs", what, i, n);
  });
}

orr_coll operation(int op, const Repeated& send, const Slab& recv, int64_t n) {
  orr_coll c = Peer::make(op, ORR_U8);
  c.count = n;
  c.send = send.part(0, static_cast<uint64_t>(n));
  c.recv = recv.part(0, static_cast<uint64_t>(n));
  c.name = "large";
  return c;
}

void exchange(Peer& peer, const Repeated& a, const Slab& b) {
  const int me = peer.rank();
  orr_coll send = operation(ORR_COLL_SEND, a, b, large),
           recv = operation(ORR_COLL_RECV, a, b, large);
  send.root_or_peer = recv.root_or_peer = 1 - me;
  peer.post({send, recv});
  expect("send and recv", b, 0, large, block(1 - me));
}

void broadcast(Peer& peer, const Repeated& a, const Slab& b) {
  spoil(b);
  peer.post(operation(ORR_COLL_BROADCAST, a, b, large));
  expect("broadcast", b, 0, large, block(0));
}

void gather(Peer& peer, const Repeated& a, const Slab& b) {
  const int64_t counts[] = {large - 1000, 1000};
  orr_coll c = operation(ORR_COLL_ALL_GATHER, a, b, large);
  c.counts = counts;
  spoil(b);
  peer.post(c);
  expect("all_gather", b, 0, counts[0], block(0));
  expect("all_gather", b, counts[0], counts[1], block(1));
}

// All of rank 0's goes to rank 1.
void trade(Peer& peer, const Repeated& a, const Slab& b) {
  const int me = peer.rank();
  orr_coll c = operation(ORR_COLL_ALL_TO_ALL, a, b, large);
  const int64_t out[2][2] = {{0, large}, {1000, 0}}, in[2][2] = {{0, 1000}, {large, 0}};
  c.counts = out[me];
  c.recv_counts = in[me];
  spoil(b);
  peer.post(c);
  expect("all_to_all", b, 0, me == 0 ? 1000 : large, block(1 - me));
}

void add(Peer& peer, const Repeated& a, const Slab& b) {
  spoil(b);
  peer.post(operation(ORR_COLL_ALL_REDUCE, a, b, large));
  std::vector<char> sum(block(0).begin(), block(0).end());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<char>(sum[i] + block(1)[i]);
  expect("all_reduce", b, 0, large, sum);
}

// Argument: "fake" leaves out what adds, which fakes of libraries do one element at a time, and
// all_to_all, which backends of libraries compose as they do all_gather (orrery/sdk/exchange.hpp).
const Body beyond("beyond", [](const std::string& backend, const std::string& what) {
  Peer peer(backend);
  const Repeated a(block(peer.rank()));
  const Slab b(peer, false, large);
  exchange(peer, a, b);
  gather(peer, a, b);
  broadcast(peer, a, b);
  if (what == "fake") return 0;
  trade(peer, a, b);
  add(peer, a, b);
  return 0;
});

TEST_P(OnMain, CountsBeyondAnIntAreMoved) {
  struct sysinfo machine {};
  sysinfo(&machine);
  const uint64_t free = (machine.freeram + machine.bufferram) * machine.mem_unit;
  if (GetParam().hosts == "aabb") GTEST_SKIP() << "two ranks are on one host";
  if (free < needed) GTEST_SKIP() << "needs " << (needed >> 30) << " GiB of free memory";
  // Large pages: most of the time would go into the first touch of so many small ones.
  const auto outcome = run(GetParam(), 2, "beyond", GetParam().fake.empty() ? "" : "fake",
                           {"ORRERY_DEADLINE=60", "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace comm_suite
