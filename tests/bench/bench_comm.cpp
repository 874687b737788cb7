// SPDX-License-Identifier: Apache-2.0
//
// local's all_reduce beside its limit, in one interleaved run: f32 sums in place, registered and
// private memory, against "pair-sum", the same adds and stores on private memory without any
// communication. Goal: registered >= 0.9 and private >= 0.55 of the limit at 64 MB.
//
//   bench_comm [rounds]      two ranks on this machine
//   bench_comm tcp [rounds]  the same two as if on two hosts, by TCP over loopback: one line of JSON with
//                            microseconds by operation and bytes, for tests/bench/peer/comm.py
#include <fmt/format.h>
#include <orrery/comm.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/error.h"
#include "job/environment.h"
#include "job/launch.h"
#include "job/store.h"
#include "plugin/host.h"
#include "plugin/registry.h"

namespace {

using Clock = std::chrono::steady_clock;

[[gnu::optimize("O3"), gnu::target_clones("avx2", "default")]] void pair_sum(float* a, float* b, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) a[i] = b[i] = a[i] + b[i];
}

struct Bench {
  orrery::World world = orrery::detect();
  std::unique_ptr<orrery::Store> store = orrery::Store::open(world);
  const orr_comm_api& api = orrery::Registry::get().comm("local");
  orr_comm* comm = nullptr;

  Bench() {
    const orr_comm_boot boot = store->boot(world);
    orrery::check(api.world(api.self, &boot, &comm));
  }
  ~Bench() { api.destroy(comm); }

  // In place.
  static orr_coll make(int op, const orr_memory* memory, int64_t n) {
    orr_coll c{};
    c.size = sizeof c;
    c.op = op;
    c.dtype = ORR_F32;
    c.redop = ORR_RED_SUM;
    c.count = n;
    c.send = c.recv = {memory, 0, static_cast<uint64_t>(n) * 4};
    return c;
  }
  void post(const std::vector<orr_coll>& group) {
    orr_work* work = nullptr;
    orrery::check(api.post(comm, group.data(), static_cast<int32_t>(group.size()), &work));
    orrery::check(api.wait(comm, work));
  }
  void post(int op, const orr_memory* memory, int64_t n) { post({make(op, memory, n)}); }
  void barrier() { post(ORR_COLL_BARRIER, nullptr, 0); }

  // Microseconds per call over a block of about 20 ms.
  double block(int calls, const std::function<void()>& call) {
    barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    barrier();
    return std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / calls;
  }
};

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

void measure(Bench& b, int64_t bytes, int rounds, orr_memory* registered, orr_memory* own, float* other) {
  const int64_t n = bytes / 4;
  const int calls = static_cast<int>(std::clamp<int64_t>((int64_t{256} << 20) / (bytes + 65536), 4, 4000));
  float* mine = static_cast<float*>(own->host);
  std::vector<double> limit, direct, staged;
  for (int i = 0; i < rounds; ++i) {
    limit.push_back(b.block(calls, [&] { pair_sum(mine, other, n / b.world.size); }));
    direct.push_back(b.block(calls, [&] { b.post(ORR_COLL_ALL_REDUCE, registered, n); }));
    staged.push_back(b.block(calls, [&] { b.post(ORR_COLL_ALL_REDUCE, own, n); }));
  }
  const double l = median(limit), d = median(direct), s = median(staged);
  if (b.world.rank == 0)
    fmt::print("{:>9} KB {:>10.2f} {:>10.2f} {:>10.2f} {:>9.2f} {:>9.2f}\n", bytes >> 10, l, d, s, l / d, l / s);
}

// Every operation on as many bytes as rank 0 has at the end.
std::vector<orr_coll> operation(const Bench& b, const std::string& name, orr_memory* memory, int64_t n,
                                const int64_t* halves) {
  if (name == "all_reduce") return {Bench::make(ORR_COLL_ALL_REDUCE, memory, n)};
  if (name == "all_gather") {
    orr_coll c = Bench::make(ORR_COLL_ALL_GATHER, memory, n);
    c.counts = halves;
    c.send.offset = static_cast<uint64_t>(b.world.rank * halves[0]) * 4;
    c.send.bytes = static_cast<uint64_t>(halves[0]) * 4;
    return {c};
  }
  orr_coll send = Bench::make(ORR_COLL_SEND, memory, n), recv = Bench::make(ORR_COLL_RECV, memory, n);
  send.root_or_peer = recv.root_or_peer = 1 - b.world.rank;
  recv.recv.offset = memory->bytes / 2;
  return {send, recv};
}

int tcp_main(int rounds) {
  Bench b;
  constexpr int64_t most = int64_t{64} << 20;
  std::vector<float> values(most / 2, 0.0f);
  orr_memory own{};
  own.bytes = 2 * most;
  own.host = values.data();
  std::string line;
  for (const char* name : {"all_reduce", "all_gather", "exchange"})
    for (int64_t bytes = 8; bytes <= most; bytes *= bytes < 4096 ? 512 : 4) {
      const int64_t n = bytes / 4, halves[] = {n / 2, n / 2};
      const int calls = static_cast<int>(std::clamp<int64_t>((int64_t{64} << 20) / (bytes + 65536), 3, 400));
      const std::vector<orr_coll> group = operation(b, name, &own, n, halves);
      std::vector<double> times;
      b.block(calls / 4 + 1, [&] { b.post(group); });
      for (int i = 0; i < rounds; ++i) times.push_back(b.block(calls, [&] { b.post(group); }));
      line += fmt::format("{}\"{} {}\": {:.2f}", line.empty() ? "" : ", ", name, bytes, median(times));
    }
  if (b.world.rank == 0) fmt::print("{{{}}}\n", line);
  return 0;
}

int rank_main(int rounds) {
  Bench b;
  constexpr int64_t most = int64_t{64} << 20;
  std::vector<float> first(most / 4, 0.0f), second(most / 4, 0.0f);
  orr_memory own{};
  own.bytes = most;
  own.host = first.data();
  orr_memory* registered = nullptr;
  orrery::check(b.api.allocate(b.comm, most, &registered));
  const double barrier = b.block(2000, [&] { b.barrier(); });
  if (b.world.rank == 0)
    fmt::print("barrier {:.2f} us (the ranks' distance)\n{:>12} {:>10} {:>10} {:>10} {:>9} {:>9}\n", barrier,
               "size", "limit us", "registered", "private", "ratio r", "ratio p");
  for (int64_t bytes = 4 << 10; bytes <= most; bytes *= 4)
    measure(b, bytes, rounds, registered, &own, second.data());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const bool tcp = argc > 1 && std::string(argv[1]) == "tcp";
    const int rounds = argc > 1 + tcp ? std::max(1, std::atoi(argv[1 + tcp])) : 5;
    if (orrery::detect().size > 1) return tcp ? tcp_main(rounds) : rank_main(rounds);
    if (tcp) setenv("ORRERY_TEST_HOSTS", "ab", 1);
    orrery::LaunchOptions options;
    options.ranks = 2;
    options.argv.assign(argv, argv + argc);
    return orrery::launch(options);
  } catch (const orrery::Error& e) {
    fmt::print(stderr, "bench_comm: {}\n", e.what());
    return e.code();
  }
}
