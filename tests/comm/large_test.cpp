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
                            << 30;  // two ranks, on each what a library or a fake device takes

// A rank's bytes are one block again and again, of a length that divides no power of two.
constexpr int64_t period = 4096 * 1009;
Bytes block(int rank) {
  static const Bytes both[2] = {numbers(ORR_U8, 1, period), numbers(ORR_U8, 2, period)};
  return both[rank];
}

// Memory of `large` bytes in which one block of a file lies again and again.
char* map_repeated(int file) {
  char* const base = static_cast<char*>(
      mmap(nullptr, large + period, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (int64_t at = 0; at < large; at += period)
    if (mmap(base + at, period, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file,
             0) == MAP_FAILED)
      fail(ORR_FAILED, "no memory: {}", std::strerror(errno));
  return base;
}

class Memory {
 public:
  Memory(const Memory&) = delete;
  orr_buffer part(uint64_t offset, uint64_t bytes) const { return {&memory_, offset, bytes}; }
  char* at(int64_t offset) const { return static_cast<char*>(memory_.host) + offset; }

 protected:
  // The block, at its beginning `bytes`.
  explicit Memory(Bytes bytes) {
    const int file = memfd_create("block", 0);
    if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
        ftruncate(file, period))
      fail(ORR_FAILED, "no block");
    memory_.size = sizeof memory_;
    memory_.bytes = large;
    memory_.host = map_repeated(file);
    close(file);
  }

 private:
  orr_memory memory_{};
};

// To read: only one block exists.
struct Repeated : Memory {
  explicit Repeated(Bytes bytes) : Memory(bytes) {}
};

// Of every window one stretch, each time at another place in it.
constexpr int64_t window = 1 << 20, stretch = 1 << 16;
int64_t stretch_of(int64_t w) { return w * window + w * 5 % 16 * stretch; }

// To write: the stretches and both ends are memory of their own, which is looked at. The rest is
// one block that is written again and again: the first touch of gigabytes would take the most time.
struct Stretches : Memory {
  Stretches() : Memory({}) {
    for (int64_t w = 0; w * window < large; ++w) own(stretch_of(w));
    own(large / stretch * stretch);
  }

 private:
  void own(int64_t from) {
    if (mmap(at(from), stretch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == MAP_FAILED)
      fail(ORR_FAILED, "no memory: {}", std::strerror(errno));
  }
};

// Places of [from, to) that are looked at: some bytes of every few in the stretches, and the last
// ones.
template <class F>
void each_spot(int64_t from, int64_t to, F&& f) {
  const auto some = [&](int64_t begin, int64_t end, int64_t apart) {
    for (int64_t at = begin; at < end; at += apart)
      for (int64_t i = std::max(at, from); i < std::min({at + 64, end, to}); ++i) f(i);
  };
  for (int64_t w = from / window; w * window < to; ++w)
    some(stretch_of(w), stretch_of(w) + stretch, w == 0 ? 64 : 1021);
  some(large / stretch * stretch, large, 64);
}

void spoil(const Stretches& place) {
  each_spot(0, large, [&](int64_t i) { *place.at(i) ^= 0x55; });
}

void expect(const char* what, const Stretches& place, int64_t at, int64_t n, Bytes wanted) {
  each_spot(at, at + n, [&](int64_t i) {
    if (*place.at(i) != wanted[static_cast<size_t>((i - at) % period)])
      fail(ORR_FAILED, "{}: byte {} of {} differs", what, i - at, n);
  });
}

orr_coll operation(int op, const Repeated& send, const Stretches& recv, int64_t n) {
  orr_coll c = Peer::make(op, ORR_U8);
  c.count = n;
  c.send = send.part(0, static_cast<uint64_t>(n));
  c.recv = recv.part(0, static_cast<uint64_t>(n));
  c.name = "large";
  return c;
}

// All of rank 1's to rank 0, and little back.
void exchange(Peer& peer, const Repeated& a, const Stretches& b) {
  const int me = peer.rank();
  const int64_t sizes[] = {1000, large};
  orr_coll send = operation(ORR_COLL_SEND, a, b, sizes[me]),
           recv = operation(ORR_COLL_RECV, a, b, sizes[1 - me]);
  send.root_or_peer = recv.root_or_peer = 1 - me;
  peer.post({send, recv});
  expect("send and recv", b, 0, sizes[1 - me], block(1 - me));
}

void broadcast(Peer& peer, const Repeated& a, const Stretches& b) {
  spoil(b);
  peer.post(operation(ORR_COLL_BROADCAST, a, b, large));
  expect("broadcast", b, 0, large, block(0));
}

void gather(Peer& peer, const Repeated& a, const Stretches& b) {
  const int64_t counts[] = {large - 1000, 1000};
  orr_coll c = operation(ORR_COLL_ALL_GATHER, a, b, large);
  c.counts = counts;
  spoil(b);
  peer.post(c);
  expect("all_gather", b, 0, counts[0], block(0));
  expect("all_gather", b, counts[0], counts[1], block(1));
}

// All of rank 0's goes to rank 1.
void trade(Peer& peer, const Repeated& a, const Stretches& b) {
  const int me = peer.rank();
  orr_coll c = operation(ORR_COLL_ALL_TO_ALL, a, b, large);
  const int64_t out[2][2] = {{0, large}, {1000, 0}}, in[2][2] = {{0, 1000}, {large, 0}};
  c.counts = out[me];
  c.recv_counts = in[me];
  spoil(b);
  peer.post(c);
  expect("all_to_all", b, 0, me == 0 ? 1000 : large, block(1 - me));
}

void add(Peer& peer, const Repeated& a, const Stretches& b) {
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
  const Stretches b;
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
  const auto outcome =
      run(GetParam(), 2, "beyond", GetParam().fake.empty() ? "" : "fake", {"ORRERY_DEADLINE=60"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

}  // namespace
}  // namespace comm_suite
