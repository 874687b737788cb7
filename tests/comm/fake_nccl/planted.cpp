// SPDX-License-Identifier: Apache-2.0
#include "planted.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace planted {
namespace {

constexpr unsigned most_seconds = 20;

void need(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "planted: %s failed\n", what);
  std::exit(1);
}

std::string slurp(int fd) {
  std::string text;
  char buffer[4096];
  lseek(fd, 0, SEEK_SET);
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(fd);
  return text;
}

}  // namespace

Rank::Rank(int r, int rs, ncclUniqueId id, int blocking) : rank(r), ranks(rs) {
  CUdevice device;
  need(cuInit(0) == CUDA_SUCCESS && cuDeviceGet(&device, r) == CUDA_SUCCESS, "cuInit");
  need(cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS, "cuDevicePrimaryCtxRetain");
  cuCtxSetCurrent(context);
  need(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS, "cuStreamCreate");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocking;
  if (rs == 0) return;
  ncclCommInitRankConfig(&comm, rs, id, r, &config);
  need(settle() == ncclSuccess, "ncclCommInitRankConfig");
}

ncclResult_t Rank::settle() {
  ncclResult_t state = ncclInProgress;
  while (ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress)
    sched_yield();
  return state;
}

void* Rank::floats(size_t n) {
  CUdeviceptr memory;
  void* pinned;
  need(cuMemAlloc(&memory, n * sizeof(float)) == CUDA_SUCCESS, "cuMemAlloc");
  need(cuMemAllocHost(&pinned, n * sizeof(float)) == CUDA_SUCCESS, "cuMemAllocHost");
  for (size_t i = 0; i < n; ++i) static_cast<float*>(pinned)[i] = static_cast<float>(rank + 1);
  cuMemcpyHtoDAsync(memory, pinned, n * sizeof(float), stream);
  sync();
  cuMemFreeHost(pinned);
  return reinterpret_cast<void*>(memory);
}

void Rank::sync(CUstream on) {
  while (cuStreamQuery(on ? on : stream) == CUDA_ERROR_NOT_READY) sched_yield();
}

float Rank::first(void* memory) {
  void* pinned;
  cuMemAllocHost(&pinned, sizeof(float));
  cuMemcpyDtoHAsync(pinned, reinterpret_cast<CUdeviceptr>(memory), sizeof(float), stream);
  sync();
  return *static_cast<float*>(pinned);
}

void Rank::all_reduce(void* memory, size_t n, ncclResult_t* result) {
  const ncclResult_t r = ncclAllReduce(memory, memory, n, ncclFloat32, ncclSum, comm, stream);
  const ncclResult_t end = r == ncclInProgress || r == ncclSuccess ? settle() : r;
  if (result) *result = end;
}

Outcome run(int ranks, const std::function<bool(int rank, ncclUniqueId id)>& body) {
  ncclUniqueId id;  // not by the library, which reads its variables when it is first asked
  std::random_device random;
  for (char& byte : id.internal) byte = static_cast<char>(random());
  const int out = memfd_create("output", 0);
  fcntl(out, F_SETFL, O_APPEND);
  std::fflush(nullptr);
  std::vector<pid_t> all;
  for (int r = 0; r < ranks; ++r) {
    all.push_back(fork());
    if (all.back() != 0) continue;
    dup2(out, 2);
    alarm(most_seconds);
    const bool good = body(r, id);
    std::exit(good ? 0 : 1);
  }
  Outcome outcome{false, 0, ""};
  bool killed = false;
  for (size_t ended = 0; ended < all.size(); ++ended) {
    int status = 0;
    waitpid(-1, &status, 0);
    outcome.aborted |= WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    outcome.failed += status != 0;
    if (outcome.aborted && !killed)
      for (pid_t pid : all) kill(pid, SIGTERM);  // the others wait for one that is gone
    killed |= outcome.aborted;
  }
  outcome.output = slurp(out);
  return outcome;
}

}  // namespace planted
