// SPDX-License-Identifier: Apache-2.0
//
// Small programs on the fake: every rank is a process of its own, all end within seconds, and what
// they say is looked at.
#pragma once

#include <cuda.h>
#include <nccl.h>

#include <functional>
#include <string>

namespace planted {

// A rank with a GPU, a stream and, with more than none, a communicator that does not block.
struct Rank {
  Rank(int rank, int ranks, ncclUniqueId id, int blocking = 0);
  // Polls until no call is under way; what it ended with.
  ncclResult_t settle();
  // `n` floats of device memory, each the rank's number, plus 1.
  void* floats(size_t n);
  // Waits for the stream and reads the first float.
  float first(void* memory);
  void sync(CUstream on = nullptr);
  void all_reduce(void* memory, size_t n, ncclResult_t* result = nullptr);

  int rank, ranks;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ncclComm_t comm = nullptr;
};

struct Outcome {
  bool aborted;  // one of them, by the fake
  int failed;    // how many ended otherwise than with 0
  std::string output;
};

// Runs the body on so many ranks. A body that returns false fails.
Outcome run(int ranks, const std::function<bool(int rank, ncclUniqueId id)>& body);

}  // namespace planted
