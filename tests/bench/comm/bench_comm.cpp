// SPDX-License-Identifier: Apache-2.0
//
// A comm plugin as a contestant (peer/comm.py): f32 sums in place, gathers, exchanges with
// neighbours, on memory that the backend registered or on its own. A barrier tells how far the CPUs
// are from each other. "limit" is what an all_reduce of two ranks cannot beat: the same adds and
// stores on private memory, without any communication.
//
//   bench_comm PIPES RANKS COMM registered|private MOST
//
// It starts its ranks itself unless a launcher has. MOST is the largest number of bytes that it
// will be asked for.
#include <fmt/format.h>
#include <orrery/comm.h>

#include <chrono>
#include <functional>
#include <vector>

#include "base/error.h"
#include "launch/environment.h"
#include "launch/launch.h"
#include "launch/store.h"
#include "pages.h"
#include "plugin/host.h"
#include "plugin/registry.h"
#include "requests.h"

namespace {

using Clock = std::chrono::steady_clock;
[[gnu::optimize("O3"), gnu::target_clones("avx2", "default")]] void pair_sum(float* a, float* b,
                                                                             int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] = a[i] + b[i];
}

class Bench {
 public:
  Bench(const std::string& comm, bool registered, int64_t most)
      : most_(most),
        world_(orrery::detect()),
        store_(orrery::Store::open(world_)),
        api_(orrery::Registry::get().comm(comm)) {
    const orr_comm_boot boot = store_->boot(world_);
    orrery::check(api_.world(api_.self, &boot, &comm_));
    registered ? registered_memory() : own_memory();
  }
  ~Bench() { api_.destroy(comm_); }
  int rank() const { return world_.rank; }

  double microseconds(const Request& r) {
    const int64_t n = r.bytes / 4;
    std::vector<int64_t> counts;
    for (int64_t q = 0; q < world_.size; ++q)
      counts.push_back(n * (q + 1) / world_.size - n * q / world_.size);
    if (r.op == "limit")
      return block(r.calls, [&] { pair_sum(data(0), data(1), n / world_.size); });
    const std::vector<orr_coll> group = operation(r.op, n, counts);
    post(group);
    return block(r.calls, [&] { post(group); });
  }

 private:
  void registered_memory() {
    for (const orr_memory*& m : memory_) {
      orr_memory* made = nullptr;
      orrery::check(api_.allocate(comm_, static_cast<uint64_t>(most_), &made));
      m = made;
    }
  }
  void own_memory() {
    for (int i : {0, 1}) {
      pages_[i] = private_memory(static_cast<size_t>(most_));
      own_[i].bytes = static_cast<uint64_t>(most_), own_[i].host = pages_[i].get();
      memory_[i] = &own_[i];
    }
  }
  float* data(int i) const { return static_cast<float*>(memory_[i]->host); }

  static orr_coll make(int op, const orr_memory* memory, int64_t n) {
    orr_coll c{};
    c.size = sizeof c;
    c.op = op, c.dtype = ORR_F32, c.redop = ORR_RED_SUM, c.count = n;
    if (memory) c.send = c.recv = {memory, 0, static_cast<uint64_t>(n) * 4};
    return c;
  }

  // On n elements in all; of an exchange, each way.
  std::vector<orr_coll> operation(const std::string& name, int64_t n,
                                  const std::vector<int64_t>& counts) const {
    const int me = world_.rank, ranks = world_.size;
    if (name == "barrier") return {make(ORR_COLL_BARRIER, nullptr, 0)};
    if (name == "all_reduce") return {make(ORR_COLL_ALL_REDUCE, memory_[0], n)};
    if (name == "exchange") {
      orr_coll send = make(ORR_COLL_SEND, memory_[0], n), recv = make(ORR_COLL_RECV, memory_[1], n);
      send.root_or_peer = (me + 1) % ranks, recv.root_or_peer = (me + ranks - 1) % ranks;
      return {send, recv};
    }
    orr_coll c =
        make(name == "all_gather" ? ORR_COLL_ALL_GATHER : ORR_COLL_REDUCE_SCATTER, memory_[0], n);
    c.counts = counts.data();
    int64_t begin = 0;
    for (int q = 0; q < me; ++q) begin += counts[static_cast<size_t>(q)];
    orr_buffer& own = name == "all_gather" ? c.send : c.recv;
    own.offset = static_cast<uint64_t>(begin) * 4,
    own.bytes = static_cast<uint64_t>(counts[static_cast<size_t>(me)]) * 4;
    return {c};
  }

  void post(const std::vector<orr_coll>& group) const {
    orr_work* work = nullptr;
    orrery::check(api_.post(comm_, group.data(), static_cast<int32_t>(group.size()), &work));
    orrery::check(api_.wait(comm_, work));
  }

  double block(int calls, const std::function<void()>& call) const {
    const std::vector<orr_coll> barrier = {make(ORR_COLL_BARRIER, nullptr, 0)};
    post(barrier);
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    post(barrier);
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
  }

  const int64_t most_;
  orrery::World world_;
  std::unique_ptr<orrery::Store> store_;
  const orr_comm_api& api_;
  orr_comm* comm_ = nullptr;
  const orr_memory* memory_[2] = {};
  orr_memory own_[2] = {};
  Pages pages_[2];
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "usage: bench_comm PIPES RANKS COMM registered|private MOST\n");
    return 64;
  }
  try {
    if (orrery::detect().size == 1) {
      orrery::LaunchOptions options;
      options.ranks = std::stoi(argv[2]);
      options.argv.assign(argv, argv + argc);
      return orrery::launch(options);
    }
    Bench bench(argv[3], std::string(argv[4]) == "registered", std::stoll(argv[5]));
    Requests requests(argv[1], bench.rank());
    for (Request r; requests.next(r);) requests.answer(bench.microseconds(r));
    return 0;
  } catch (const orrery::Error& e) {
    fmt::print(stderr, "bench_comm: {}\n", e.what());
    return e.code();
  } catch (const std::exception& e) {
    fmt::print(stderr, "bench_comm: {}\n", e.what());
    return 1;
  }
}
