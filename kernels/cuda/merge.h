// SPDX-License-Identifier: Apache-2.0
//
// Launches of one generated kernel that a recording holds side by side become one, so that the
// updates of all tensors take no more launches than they have expressions. What each would have
// done is a row of a table in the device's memory; it computes the same bits. A launch joins an
// earlier one only over others that are known here and share no written byte with it: whatever else
// was recorded between them keeps them apart.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "function.h"
#include "memory.h"

namespace orr_cuda {

// One launch of a generated kernel.
struct PointwiseLaunch {
  Function many = nullptr;  // the form for tables (pointwise_source.h); null: it stays alone
  unsigned blocks = 0, threads = 0;
  uint64_t elements = 0;
  size_t inputs = 0;                   // so many tensors are read, those behind them written
  std::vector<CUdeviceptr> addresses;  // of each tensor
  std::vector<uint64_t> bytes;         // behind each address
};

class Merge {
 public:
  explicit Merge(CUstream stream) : stream_(stream) {}

  // Calls `alone`, which enqueues the launch by itself, unless an earlier launch can take it in.
  void add(const PointwiseLaunch& launch, const std::function<void()>& alone);
  // Makes the launches that took others in do all their work; the recording has ended and no graph
  // was made of it yet. The table must live as long as that graph. Null if nothing was merged.
  std::unique_ptr<OwnMemory> finish();

 private:
  struct Range {
    CUdeviceptr begin, end;
  };
  struct Group {
    CUgraphNode node;
    Function many;
    unsigned threads, blocks = 0, rows = 0;
    std::vector<uint64_t> table;  // rows as pointwise_many reads them
    std::vector<Range> read, written;
  };
  CUgraphNode youngest() const;
  Group* host_of(const PointwiseLaunch& launch);
  static bool meet(const Group& group, const PointwiseLaunch& launch);
  static void take_in(Group& group, const PointwiseLaunch& launch);

  CUstream stream_;
  std::list<Group> groups_;     // in the order of their nodes
  size_t open_ = 0;             // of them, at the end: nothing unknown was recorded since the first
  CUgraphNode last_ = nullptr;  // the newest node when the last launch had been added
};

// The recordings under way on this thread, by stream.
std::map<CUstream, Merge>& recordings();

}  // namespace orr_cuda
