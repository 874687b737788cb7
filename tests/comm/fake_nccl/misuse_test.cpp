// SPDX-License-Identifier: Apache-2.0
//
// The fake catches what the real library would hang or crash on: each misuse planted in a small
// program ends it by name, and the same program without the misuse passes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>

#include "planted.h"

// ThreadSanitizer reports what these tests plant before the fake can: races, allocation in a
// signal's handler, threads of a rank that ends in the midst.
#ifdef __SANITIZE_THREAD__
#define EXCEPT_UNDER_THREAD_SANITIZER GTEST_SKIP() << "ThreadSanitizer reports it first"
#else
#define EXCEPT_UNDER_THREAD_SANITIZER static_cast<void>(0)
#endif

namespace {

using planted::Rank;
using Body = std::function<bool(int, ncclUniqueId)>;

constexpr size_t n = 5000;

void expect_caught(int ranks, const char* rule, const Body& body) {
  const planted::Outcome outcome = planted::run(ranks, body);
  EXPECT_TRUE(outcome.aborted) << outcome.output;
  EXPECT_NE(outcome.output.find(std::string("fake NCCL: ") + rule + ": "), std::string::npos)
      << outcome.output;
}

void expect_fine(int ranks, const Body& body) {
  const planted::Outcome outcome = planted::run(ranks, body);
  EXPECT_EQ(outcome.failed, 0) << outcome.output;
}

bool end(Rank& r) {
  ncclCommFinalize(r.comm);
  return r.settle() == ncclSuccess && ncclCommDestroy(r.comm) == ncclSuccess;
}

TEST(FakeNccl, RightUsePasses) {
  expect_fine(3, [](int rank, ncclUniqueId id) {
    Rank r(rank, 3, id);
    void* memory = r.floats(n);
    for (int i = 0; i < 20; ++i) r.all_reduce(memory, n);
    return r.first(memory) == 6.0f * 1162261467.0f && end(r);  // 3^19
  });
}

TEST(FakeNccl, MismatchedOrder) {
  expect_caught(2, "mismatched order between ranks", [](int rank, ncclUniqueId id) {
    Rank r(rank, 2, id);
    void* memory = r.floats(n);
    if (rank == 0) r.all_reduce(memory, n);
    ncclBroadcast(memory, memory, n, ncclFloat32, 0, r.comm, r.stream);
    r.settle();
    if (rank == 1) r.all_reduce(memory, n);
    r.sync();
    return true;
  });
}

TEST(FakeNccl, MismatchedCounts) {
  expect_caught(2, "mismatched order between ranks", [](int rank, ncclUniqueId id) {
    Rank r(rank, 2, id);
    r.all_reduce(r.floats(n), rank == 0 ? n : n - 1);
    r.sync();
    return true;
  });
}

TEST(FakeNccl, UseAfterAbort) {
  expect_caught(1, "use after abort", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    void* memory = r.floats(n);
    ncclCommAbort(r.comm);
    r.all_reduce(memory, n);
    return true;
  });
}

TEST(FakeNccl, UseAfterDestroy) {
  expect_caught(1, "use after destroy", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    end(r);
    r.settle();
    return true;
  });
}

TEST(FakeNccl, MissingGroupEnd) {
  const auto body = [](bool ends) {
    return [ends](int rank, ncclUniqueId id) {
      Rank r(rank, 2, id);
      void* memory = r.floats(n);
      ncclGroupStart();
      ncclAllReduce(memory, memory, n, ncclFloat32, ncclSum, r.comm, r.stream);
      if (ends) ncclGroupEnd();
      r.settle();
      return r.first(memory) == 3 && end(r);
    };
  };
  expect_fine(2, body(true));
  expect_caught(2, "missing group end", body(false));
}

TEST(FakeNccl, GroupEndWithoutBegin) {
  expect_caught(1, "group end without a begin", [](int, ncclUniqueId) {
    ncclGroupEnd();
    return true;
  });
}

// The second thread comes while the first one's group is open.
TEST(FakeNccl, TwoThreadsIssuing) {
  expect_caught(1, "two threads issuing on one communicator", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    void* memory = r.floats(n);
    ncclGroupStart();
    ncclAllReduce(memory, memory, n, ncclFloat32, ncclSum, r.comm, r.stream);
    std::thread([&] {
      cuCtxSetCurrent(r.context);
      r.all_reduce(memory, n);
    }).join();
    return ncclGroupEnd() == ncclSuccess;
  });
}

TEST(FakeNccl, CallBeforeTheLastOneIsDone) {
  expect_caught(1, "call before the last one is done", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    void* memory = r.floats(n);
    for (int i = 0; i < 100; ++i)
      ncclAllReduce(memory, memory, n, ncclFloat32, ncclSum, r.comm, r.stream);
    return true;
  });
}

TEST(FakeNccl, HostPointer) {
  expect_caught(1, "not device memory", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    std::vector<float> host(n);
    r.all_reduce(host.data(), n);
    return true;
  });
}

TEST(FakeNccl, HostTouchesDeviceMemory) {
  EXCEPT_UNDER_THREAD_SANITIZER;
  expect_caught(1, "host code touches device memory", [](int rank, ncclUniqueId id) {
    Rank r(rank, 0, id);
    return *static_cast<volatile float*>(r.floats(n)) == 1;
  });
}

TEST(FakeNccl, MemoryFreedInUse) {
  expect_caught(2, "memory freed in use", [](int rank, ncclUniqueId id) {
    Rank r(rank, 2, id);
    void* memory = r.floats(n);
    if (rank == 1) usleep(200000);
    r.all_reduce(memory, n);
    cuMemFree(reinterpret_cast<CUdeviceptr>(memory));
    return true;
  });
}

// Another stream writes, first after an event that says it may, then without.
TEST(FakeNccl, MemoryOverwrittenInUse) {
  const auto body = [](bool waits) {
    return [waits](int rank, ncclUniqueId id) {
      Rank r(rank, 2, id);
      void* memory = r.floats(n);
      CUstream other;
      CUevent event;
      cuStreamCreate(&other, 0);
      cuEventCreate(&event, 0);
      if (rank == 1) usleep(200000);
      r.all_reduce(memory, n);
      cuEventRecord(event, r.stream);
      if (waits) cuStreamWaitEvent(other, event, 0);
      cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(memory), 0, n, other);
      r.sync(other);
      return r.first(memory) == 0 && end(r);
    };
  };
  expect_fine(2, body(true));
  expect_caught(2, "memory overwritten in use", body(false));
}

TEST(FakeNccl, SourceOfACopyOverwritten) {
  EXCEPT_UNDER_THREAD_SANITIZER;
  expect_caught(1, "memory overwritten in use", [](int rank, ncclUniqueId id) {
    Rank r(rank, 0, id);
    void* pinned;
    CUdeviceptr memory;
    cuMemAllocHost(&pinned, 1 << 20);
    cuMemAlloc(&memory, 1 << 20);
    std::memset(pinned, 1, 1 << 20);
    for (int i = 0; i < 100; ++i) {
      cuMemcpyHtoDAsync(memory, pinned, 1 << 20, r.stream);
      std::memset(pinned, i, 1 << 20);
    }
    return true;
  });
}

TEST(FakeNccl, ReadingBeforeSynchronisingIsWrong) {
  expect_fine(2, [](int rank, ncclUniqueId id) {
    Rank r(rank, 2, id);
    void* memory = r.floats(n);
    void* pinned;
    cuMemAllocHost(&pinned, 4);
    *static_cast<float*>(pinned) = -1;
    if (rank == 1) usleep(100000);
    r.all_reduce(memory, n);
    cuMemcpyDtoHAsync(pinned, reinterpret_cast<CUdeviceptr>(memory), 4, r.stream);
    const float early = *static_cast<volatile float*>(pinned);
    r.sync();
    return (rank == 1 || early == -1) && *static_cast<float*>(pinned) == 3 && end(r);
  });
}

TEST(FakeNccl, WindowOnOtherMemory) {
  expect_caught(1, "window on other memory", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    ncclWindow_t window;
    ncclCommWindowRegister(r.comm, r.floats(n), n * 4, &window, NCCL_WIN_COLL_SYMMETRIC);
    return true;
  });
}

TEST(FakeNccl, WindowNotRegistered) {
  expect_caught(1, "window that is not registered", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    ncclCommWindowDeregister(r.comm, reinterpret_cast<ncclWindow_t>(&r));
    return true;
  });
}

TEST(FakeNccl, MemoryFreedUnderAWindow) {
  expect_caught(1, "memory freed in use", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    ncclWindow_t window;
    void* memory;
    ncclMemAlloc(&memory, 4096);
    ncclCommWindowRegister(r.comm, memory, 4096, &window, NCCL_WIN_COLL_SYMMETRIC);
    ncclMemFree(memory);
    return true;
  });
}

TEST(FakeNccl, CallFromAStreamCallback) {
  expect_caught(1, "call from a stream callback", [](int rank, ncclUniqueId id) {
    Rank r(rank, 0, id);
    const auto call = [](void* stream) { cuStreamQuery(static_cast<CUstream>(stream)); };
    cuLaunchHostFunc(r.stream, call, r.stream);
    r.sync();
    return true;
  });
}

// Both send first. In a group it is no matter.
TEST(FakeNccl, MessagesOutsideOfAGroup) {
  const auto body = [](bool grouped) {
    return [grouped](int rank, ncclUniqueId id) {
      Rank r(rank, 2, id);
      void *out = r.floats(n), *in = r.floats(n);
      if (grouped) ncclGroupStart();
      ncclSend(out, n, ncclFloat32, 1 - rank, r.comm, r.stream);
      if (!grouped) r.settle();
      ncclRecv(in, n, ncclFloat32, 1 - rank, r.comm, r.stream);
      if (grouped) ncclGroupEnd();
      r.settle();
      r.sync();
      return r.first(in) == static_cast<float>(2 - rank) && end(r);
    };
  };
  expect_fine(2, body(true));
  expect_caught(2, "messages outside of a group block each other", body(false));
}

TEST(FakeNccl, UnequalEndsOfAMessage) {
  expect_caught(2, "unequal ends of a message", [](int rank, ncclUniqueId id) {
    Rank r(rank, 2, id);
    void* memory = r.floats(n);
    if (rank == 0) ncclSend(memory, n, ncclFloat32, 1, r.comm, r.stream);
    if (rank == 1) ncclRecv(memory, n / 2, ncclFloat32, 0, r.comm, r.stream);
    r.settle();
    r.sync();
    return true;
  });
}

TEST(FakeNccl, DestroyedWithoutBeingFinalized) {
  expect_caught(1, "destroyed without being finalized", [](int rank, ncclUniqueId id) {
    Rank r(rank, 1, id);
    ncclCommDestroy(r.comm);
    return true;
  });
}

// What forming a communicator of two ranks on the first device comes to; each has a host of its own
// by that name, if one is given, and sets `more`.
using Variables = std::map<const char*, const char*>;
void expect_on_one_device(ncclResult_t wanted, const char* error, const char* host = nullptr,
                          const Variables& more = {}) {
  EXCEPT_UNDER_THREAD_SANITIZER;
  const planted::Outcome outcome = planted::run(2, [&](int rank, ncclUniqueId id) {
    if (host) setenv("NCCL_HOSTID", (host + std::to_string(rank)).c_str(), 1);
    for (const auto& [name, value] : more) setenv(name, value, 1);
    Rank r(0, 0, id);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclCommInitRankConfig(&r.comm, 2, id, rank, &config);
    return r.settle() == wanted && std::strstr(ncclGetLastError(nullptr), error);
  });
  EXPECT_EQ(outcome.failed, 0) << outcome.output;
}

TEST(FakeNccl, TwoRanksOnOneDeviceAreRefused) {
  expect_on_one_device(ncclInvalidUsage, "Duplicate GPU detected");
  expect_on_one_device(ncclInvalidUsage, "Duplicate GPU detected", nullptr,
                       {{"NCCL_HOSTID", "one"}});
}

TEST(FakeNccl, OtherHostsAreReachedByLoopbackAlone) {
  const Variables sockets = {{"NCCL_SOCKET_IFNAME", "lo"}}, no_ib = {{"NCCL_IB_DISABLE", "1"}};
  expect_on_one_device(ncclSystemError, "no socket interface", "h", no_ib);
  expect_on_one_device(ncclSystemError, "ibv_modify_qp", "h", sockets);
  expect_on_one_device(ncclSuccess, "", "h",
                       {{"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_IB_DISABLE", "1"}});
}

}  // namespace
