// SPDX-License-Identifier: Apache-2.0
//
// Buffers of a device, for backends that take them: every operation on a stream against sums of
// integers, which come out alike in any order, and how a wait for it ends.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "conformance/comm/peer.h"
#include "settings.h"

namespace comm_suite {
namespace {

using ranks::count;
using Numbers = std::vector<int32_t>;

// What the test needs of the driver; the backend has made its context this thread's.
class Gpu {
 public:
  Gpu() {
    const char* named = std::getenv("ORRERY_CUDA_LIBRARY");
    handle_ = dlopen(named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle_) fail(ORR_FAILED, "{}", dlerror());
    need(function<CUresult(CUstream*, unsigned)>("cuStreamCreate")(&stream_,
                                                                   CU_STREAM_NON_BLOCKING));
    need(function<CUresult(void**, size_t)>("cuMemAllocHost_v2", "cuMemAllocHost")(&pinned_, most));
  }
  orr_stream* stream() const { return reinterpret_cast<orr_stream*>(stream_); }
  void upload(const orr_memory& to, const Numbers& from) {
    std::memcpy(pinned_, from.data(), from.size() * 4);
    need(function<CUresult(CUdeviceptr, const void*, size_t, CUstream)>(
        "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync")(reinterpret_cast<CUdeviceptr>(to.native),
                                                     pinned_, from.size() * 4, stream_));
    sync();
  }
  Numbers download(const orr_memory& from, size_t n) {
    need(function<CUresult(void*, CUdeviceptr, size_t, CUstream)>("cuMemcpyDtoHAsync_v2",
                                                                  "cuMemcpyDtoHAsync")(
        pinned_, reinterpret_cast<CUdeviceptr>(from.native), n * 4, stream_));
    sync();
    const auto* p = static_cast<int32_t*>(pinned_);
    return Numbers(p, p + n);
  }

 private:
  static constexpr size_t most = 1 << 20;
  template <class F>
  F* function(const char* name, const char* older = nullptr) const {
    void* found = dlsym(handle_, name);
    if (!found && older) found = dlsym(handle_, older);
    if (!found) fail(ORR_FAILED, "no {}", name);
    return reinterpret_cast<F*>(found);
  }
  static void need(CUresult r) {
    if (r != CUDA_SUCCESS) fail(ORR_FAILED, "driver error {}", static_cast<int>(r));
  }
  void sync() const {
    CUresult r;
    while ((r = function<CUresult(CUstream)>("cuStreamQuery")(stream_)) == CUDA_ERROR_NOT_READY)
      sched_yield();
    need(r);
  }
  void* handle_;
  CUstream stream_ = nullptr;
  void* pinned_ = nullptr;
};

int32_t element(int64_t rank, int64_t i) {
  return static_cast<int32_t>((rank + 1) * 1000003 + i * 7);
}

Numbers of_rank(int rank, int64_t n, int64_t from = 0) {
  Numbers out(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] = element(rank, from + i);
  return out;
}

Numbers sum_of(int ranks, int64_t n, int64_t from = 0) {
  Numbers out(static_cast<size_t>(n), 0);
  for (int r = 0; r < ranks; ++r)
    for (int64_t i = 0; i < n; ++i) out[static_cast<size_t>(i)] += element(r, from + i);
  return out;
}

// Two registered memories of the device, and what is done with them.
struct Desk {
  explicit Desk(const std::string& backend) : peer(backend) {
    check(peer.api.allocate(peer.comm, 1 << 20, &a));
    check(peer.api.allocate(peer.comm, 1 << 20, &b));
  }
  ~Desk() {
    peer.api.free(peer.comm, b);
    peer.api.free(peer.comm, a);
  }
  orr_coll make(int op, int64_t n, int peer_or_root = 0) const {
    orr_coll c = Peer::make(op, ORR_I32);
    c.count = n;
    c.root_or_peer = peer_or_root;
    c.send = {a, 0, a->bytes};
    c.recv = {b, 0, b->bytes};
    c.stream = gpu.stream();
    c.name = "far";
    return c;
  }
  Numbers run(const orr_coll& c, const Numbers& send, size_t n) {
    gpu.upload(*a, send);
    peer.post(c);
    return gpu.download(*b, n);
  }
  Peer peer;
  Gpu gpu;
  orr_memory *a = nullptr, *b = nullptr;
};

void expect(const char* what, const Numbers& got, const Numbers& want) {
  if (got == want) return;
  size_t i = 0;
  while (i < got.size() && got[i] == want[i]) ++i;
  fail(ORR_FAILED, "{}: element {} of {} is {}, not {}", what, i, want.size(), got[i], want[i]);
}

void collectives(Desk& d, int64_t n) {
  const int P = d.peer.size(), me = d.peer.rank();
  const size_t m = static_cast<size_t>(n);
  expect("all_reduce", d.run(d.make(ORR_COLL_ALL_REDUCE, n), of_rank(me, n), m), sum_of(P, n));
  const Numbers reduced = d.run(d.make(ORR_COLL_REDUCE, n, P - 1), of_rank(me, n), m);
  if (me == P - 1) expect("reduce", reduced, sum_of(P, n));
  expect("broadcast", d.run(d.make(ORR_COLL_BROADCAST, n, P / 2), of_rank(me, n), m),
         of_rank(P / 2, n));
}

// Parts of n elements in all: equal ones, then one of nothing and the rest uneven.
void parts(Desk& d, bool even) {
  const int P = d.peer.size(), me = d.peer.rank();
  std::vector<int64_t> counts, begin{0};
  for (int r = 0; r < P; ++r) counts.push_back(even ? 500 : r == 1 ? 0 : 300 + 77 * r);
  for (int64_t c : counts) begin.push_back(begin.back() + c);
  const int64_t n = begin.back(), own = counts[me];
  orr_coll c = d.make(ORR_COLL_REDUCE_SCATTER, 0);
  c.counts = counts.data();
  expect("reduce_scatter", d.run(c, of_rank(me, n), own), sum_of(P, own, begin[me]));
  c.op = ORR_COLL_ALL_GATHER;
  Numbers all;
  for (int r = 0; r < P; ++r) {
    const Numbers part = of_rank(r, counts[r]);
    all.insert(all.end(), part.begin(), part.end());
  }
  expect("all_gather", d.run(c, of_rank(me, own), n), all);
}

void all_to_all(Desk& d) {
  const int P = d.peer.size(), me = d.peer.rank();
  std::vector<int64_t> out, in;
  Numbers send, want;
  for (int q = 0; q < P; ++q) {
    out.push_back(100 * me + q), in.push_back(100 * q + me);
    const Numbers to = of_rank(me, out.back(), q), from = of_rank(q, in.back(), me);
    send.insert(send.end(), to.begin(), to.end());
    want.insert(want.end(), from.begin(), from.end());
  }
  orr_coll c = d.make(ORR_COLL_ALL_TO_ALL, 0);
  c.counts = out.data(), c.recv_counts = in.data();
  expect("all_to_all", d.run(c, send, want.size()), want);
  // In one memory, as plans have it: what arrives lies behind what is sent.
  const uint64_t half = d.a->bytes / 2;
  c.recv = {d.a, half, half};
  d.gpu.upload(*d.a, send);
  d.peer.post(c);
  const Numbers all = d.gpu.download(*d.a, half / 4 + want.size());
  expect("all_to_all in one memory", {all.begin() + static_cast<int64_t>(half / 4), all.end()},
         want);
}

void shift(Desk& d, int64_t n) {
  const int P = d.peer.size(), me = d.peer.rank(), left = (me + P - 1) % P;
  d.gpu.upload(*d.a, of_rank(me, n));
  d.peer.post({d.make(ORR_COLL_SEND, n, (me + 1) % P), d.make(ORR_COLL_RECV, n, left)});
  expect("send and recv", d.gpu.download(*d.b, static_cast<size_t>(n)), of_rank(left, n));
}

const Body on_device("on device", [](const std::string& backend, const std::string&) {
  Desk d(backend);
  expect("fresh memory", d.gpu.download(*d.a, 1000), Numbers(1000, 0));
  for (int64_t n : {1, 1000, 100003}) collectives(d, n), shift(d, n);
  for (bool even : {true, false}) parts(d, even);
  all_to_all(d);
  return 0;
});

// Many operations under way on the stream at once, waited for in their order.
const Body in_flight("in flight", [](const std::string& backend, const std::string&) {
  Desk d(backend);
  const int P = d.peer.size(), me = d.peer.rank();
  orr_coll c = d.make(ORR_COLL_ALL_REDUCE, 1000);
  c.recv = c.send;
  d.gpu.upload(*d.a, Numbers(1000, me + 1));
  std::vector<orr_work*> works(10);
  for (orr_work*& w : works) check(d.peer.api.post(d.peer.comm, &c, 1, &w));
  for (orr_work* w : works) check(d.peer.api.wait(d.peer.comm, w));
  int32_t want = P * (P + 1) / 2;
  for (int i = 1; i < 10; ++i) want *= P;
  expect("ten in flight", d.gpu.download(*d.a, 1000), Numbers(1000, want));
  return 0;
});

// Argument: what rank 1 does otherwise.
const Body differs("differs", [](const std::string& backend, const std::string& how) {
  Desk d(backend);
  orr_coll c = d.make(ORR_COLL_ALL_REDUCE, 1000);
  if (d.peer.rank() == 1 && how == "late") sleep(6);
  if (how == "ends" && d.peer.rank() == 0) c = d.make(ORR_COLL_SEND, 200000, 1);
  if (how == "ends" && d.peer.rank() == 1) c = d.make(ORR_COLL_RECV, 100000, 0);
  if (d.peer.rank() == 1 && how == "count") c.count = 999;
  if (how == "tree") c.op = ORR_COLL_TREE_ALL_REDUCE;
  const std::vector<int64_t> microbatches = {0, 1, 2};
  c.leaf_first = microbatches.data();
  d.peer.post(c);
  return 0;
});

class OnDevice : public OnMain {
 protected:
  void SetUp() override {
    OnMain::SetUp();
    if (!IsSkipped() && GetParam().backend != "nccl") GTEST_SKIP() << "takes no device buffers";
  }
};

TEST_P(OnDevice, OperationsEqualTheModel) {
  for (int n = 1; n <= 4; ++n) {
    const auto outcome = run(GetParam(), n, "on device", "", {"ORRERY_DEADLINE=60"});
    EXPECT_EQ(outcome.code, 0) << n << " ranks: " << outcome.output;
  }
}

TEST_P(OnDevice, WorksAreDoneInTheirOrder) {
  const auto outcome = run(GetParam(), 3, "in flight", "", {"ORRERY_DEADLINE=20"});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_P(OnDevice, AWaitEndsAtTheDeadline) {
  const auto outcome = run(GetParam(), 2, "differs", "late", deadline("1"));
  EXPECT_GE(count(outcome.output, "rank 1 has not answered for 1 s in all_reduce 'far'"), 1)
      << outcome.output;
  EXPECT_EQ(outcome.code, ORR_DEADLINE) << outcome.output;
}

// Nothing is agreed on before operations of a stream: what does not fit hangs, and is named then.
TEST_P(OnDevice, WhatDoesNotFitIsNamedAtTheDeadline) {
  std::vector<std::string> env = deadline("1");
  env.push_back("FAKE_NCCL_HANG=1");
  const auto counts = run(GetParam(), 2, "differs", "count", env);
  EXPECT_GE(
      count(counts.output,
            "rank 0 all_reduce 'far' of 1000 i32, operation 0; rank 1 all_reduce 'far' of 999 i32"),
      2)
      << counts.output;
  const auto ends = run(GetParam(), 2, "differs", "ends", env);
  EXPECT_GE(count(ends.output,
                  "rank 0 sends 200000 i32 'far' to rank 1, which receives 100000 i32 'far'"),
            2)
      << ends.output;
}

TEST_P(OnDevice, TreesAreRefused) {
  const auto outcome = run(GetParam(), 2, "differs", "tree", {"ORRERY_DEADLINE=10"});
  EXPECT_EQ(count(outcome.output,
                  "tree_all_reduce 'far': trees are added on the host: give it host buffers"),
            2)
      << outcome.output;
}

const auto names = [](const testing::TestParamInfo<Setting>& info) { return name_of(info.param); };
INSTANTIATE_TEST_SUITE_P(Backends, OnDevice, testing::ValuesIn(settings()), names);

}  // namespace
}  // namespace comm_suite
