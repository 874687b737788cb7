// SPDX-License-Identifier: Apache-2.0
//
// Several communicators in progress at once, each driven by a thread of its own. Neighbours begin
// with them in opposite orders: where one communicator's operation holds up another's, they wait
// for each other until the deadline.
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <thread>

#include "conformance/comm/bodies.h"
#include "conformance/comm/peer.h"

namespace comm_suite {
namespace {

constexpr int64_t most = 300000;  // elements
constexpr int64_t deadline_ns = 10'000'000'000;
constexpr uint64_t bytes_of(int64_t n) { return static_cast<uint64_t>(n) * sizeof(int32_t); }

// One communicator's operations: sums, gathers, broadcasts and messages of numbers that no other
// communicator has.
class Driver {
 public:
  Driver(const Peer& parent, int number)
      : peer_(parent, 0, number % 2 ? -parent.rank() : parent.rank()),
        slab_(peer_, peer_.places().back(), bytes_of(most * (peer_.size() + 1))),
        number_(number) {}

  void run() {
    for (int round = 0; round < 5; ++round)
      for (int64_t n : {int64_t{1}, int64_t{2000}, most / 4, most}) {
        salt_ = 1000 * number_ + round;
        sum(n);
        gather(n);
        broadcast(n);
        pass_on(n);
      }
  }

 private:
  int32_t value(int rank, int64_t i) const {
    return static_cast<int32_t>(salt_ + 100000 * rank + i % 97);
  }
  int32_t* at(int64_t element) { return reinterpret_cast<int32_t*>(slab_.at(bytes_of(element))); }
  orr_buffer part(int64_t first, int64_t n) const {
    return slab_.part(bytes_of(first), bytes_of(n));
  }
  void fill(int64_t n) {
    for (int64_t i = 0; i < n; ++i) at(0)[i] = value(peer_.rank(), i);
  }
  void expect(const char* what, int64_t i, int32_t got, int64_t want) const {
    if (got != want)
      fail(ORR_FAILED, "communicator {}: {}: element {} is {}, not {}", number_, what, i, got,
           want);
  }

  void sum(int64_t n) {
    fill(n);
    orr_coll c = Peer::make(ORR_COLL_ALL_REDUCE, ORR_I32);
    c.count = n, c.send = part(0, n), c.recv = part(most, n), c.name = "sum",
    c.deadline_ns = deadline_ns;
    peer_.post(c);
    for (int64_t i = 0; i < n; ++i) {
      int64_t want = 0;
      for (int r = 0; r < peer_.size(); ++r) want += value(r, i);
      expect("sum", i, at(most)[i], want);
    }
  }

  void gather(int64_t n) {
    const std::vector<int64_t> counts(static_cast<size_t>(peer_.size()), n);
    fill(n);
    orr_coll c = Peer::make(ORR_COLL_ALL_GATHER, ORR_I32);
    c.counts = counts.data(), c.send = part(0, n), c.name = "gather", c.deadline_ns = deadline_ns;
    c.recv = part(most, n * peer_.size());
    peer_.post(c);
    for (int64_t i = 0; i < n * peer_.size(); ++i)
      expect("gather", i, at(most)[i], value(static_cast<int>(i / n), i % n));
  }

  void broadcast(int64_t n) {
    const int root = salt_ % peer_.size();
    fill(n);
    orr_coll c = Peer::make(ORR_COLL_BROADCAST, ORR_I32);
    c.count = n, c.root_or_peer = root, c.send = c.recv = part(0, n), c.name = "broadcast";
    c.deadline_ns = deadline_ns;
    peer_.post(c);
    for (int64_t i = 0; i < n; ++i) expect("broadcast", i, at(0)[i], value(root, i));
  }

  // All communicators use the same tag.
  void pass_on(int64_t n) {
    const int P = peer_.size(), me = peer_.rank(), left = (me + P - 1) % P;
    fill(n);
    orr_coll send = Peer::make(ORR_COLL_SEND, ORR_I32), recv = Peer::make(ORR_COLL_RECV, ORR_I32);
    send.count = recv.count = n, send.tag = recv.tag = 3, send.name = recv.name = "message";
    send.deadline_ns = recv.deadline_ns = deadline_ns;
    send.root_or_peer = (me + 1) % P, recv.root_or_peer = left;
    send.send = part(0, n), recv.recv = part(most, n);
    peer_.post({send, recv});
    for (int64_t i = 0; i < n; ++i) expect("message", i, at(most)[i], value(left, i));
  }

  Peer peer_;
  Slab slab_;
  const int number_;
  int salt_ = 0;
};

// A rank begins with one communicator every tenth of a second. The first to fail ends all.
int several_at_once(const std::string& backend, const std::string&) {
  Peer world(backend);
  if (!world.has(ORR_COMM_CONCURRENT)) return 0;
  constexpr int communicators = 3;
  std::vector<std::unique_ptr<Driver>> drivers;
  for (int i = 0; i < communicators; ++i) drivers.push_back(std::make_unique<Driver>(world, i));
  world.barrier();
  std::atomic<bool> failed = false;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int i = 0; i < communicators; ++i)
    threads.emplace_back([&, driver = drivers[static_cast<size_t>(i)].get(), i] {
      const int turn = world.rank() % 2 ? communicators - 1 - i : i;
      std::this_thread::sleep_for(std::chrono::milliseconds(100 * turn));
      try {
        driver->run();
      } catch (...) {
        if (failed.exchange(true)) return;
        first = std::current_exception();
        world.api.abort(world.comm, "another communicator has failed");
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  world.barrier();
  return 0;
}

}  // namespace

std::vector<NamedBody> concurrent_bodies() { return {{"several at once", several_at_once}}; }

}  // namespace comm_suite
