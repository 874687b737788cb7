// SPDX-License-Identifier: Apache-2.0
//
// Merges launches of the same generated kernel in a recording into one, so that the updates of all
// tensors take only as many launches as there are different expressions. Each merged launch is a
// row of a table in the device's memory, and computes the same bits. A launch can only be merged
// with an earlier one if all work recorded between them is known here, and none of it shares a byte
// with the launch that one of them writes.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "function.h"
#include "memory.h"
#include "pointwise_layout.h"

namespace orr_cuda {

// One launch of a generated kernel.
struct SmallLaunch {
  // The kernel's form that reads a table of launches (pointwise_source.h). Null: the launch cannot
  // be merged.
  Function many = nullptr;
  unsigned blocks = 0, threads = 0, shared = 0;  // and bytes of a block's shared memory
  size_t inputs = 0;  // how many of the tensors the kernel reads; it writes the others
  std::vector<CUdeviceptr> addresses;  // of all tensors, first those that are read
  std::vector<Reach> reaches;          // of each tensor
  std::vector<uint64_t> numbers;       // what else it has in a row of the table
};

class Merge {
 public:
  explicit Merge(CUstream stream) : stream_(stream) {}

  // Merges the launch with an earlier one, or else calls `alone`, which enqueues it by itself.
  void add(const SmallLaunch& launch, const std::function<void()>& alone);
  // Changes the recorded launches so that they do the work of those merged with them. Called when
  // the recording has ended, before a graph is made of it. Returns the table, which must live as
  // long as that graph; null if nothing was merged.
  std::unique_ptr<OwnMemory> finish();

 private:
  // Launches that are merged into the first of them.
  struct Group {
    CUgraphNode node;
    std::vector<SmallLaunch> launches;
  };
  CUgraphNode youngest() const;
  Group* host_of(const SmallLaunch& launch);

  CUstream stream_;
  std::list<Group> groups_;     // in the order of their nodes
  size_t open_ = 0;             // how many last groups may grow: no unknown work came after them
  CUgraphNode last_ = nullptr;  // the newest node after the last launch was added
};

// The recordings under way on this thread, by stream.
std::map<CUstream, Merge>& recordings();

}  // namespace orr_cuda
