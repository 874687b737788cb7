// SPDX-License-Identifier: Apache-2.0
#include "merge.h"

#include "stream.h"

namespace orr_cuda {
namespace {

// Whether two tensors may share a byte. Two borders of one tensor do not, though each lies between
// the rows of the other.
bool share(CUdeviceptr a, const Reach& of_a, CUdeviceptr b, const Reach& of_b) {
  if (a >= b + of_b.bytes || b >= a + of_a.bytes) return false;
  const uint64_t period = of_a.period;
  if (period == 0 || period != of_b.period) return true;
  const uint64_t behind = b >= a ? (b - a) % period : (period - (a - b) % period) % period;
  return behind < of_a.run || behind + of_b.run > period;
}

// Whether one of two launches writes a byte that the other one reads or writes.
bool meet(const SmallLaunch& a, const SmallLaunch& b) {
  for (size_t i = 0; i < a.addresses.size(); ++i)
    for (size_t j = i < a.inputs ? b.inputs : 0; j < b.addresses.size(); ++j)
      if (share(a.addresses[i], a.reaches[i], b.addresses[j], b.reaches[j])) return true;
  return false;
}

// Whether one kernel does the work of both.
bool alike(const SmallLaunch& a, const SmallLaunch& b) {
  return a.many && a.many == b.many && a.threads == b.threads && a.shared == b.shared;
}

}  // namespace

std::map<CUstream, Merge>& recordings() {
  static thread_local std::map<CUstream, Merge> all;
  return all;
}

// Null where the stream's next node would follow none or several, or edges of a kind of their own.
CUgraphNode Merge::youngest() const {
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUgraphNode* nodes = nullptr;
  size_t count = 0;
  const CUresult asked =
      driver().cuStreamGetCaptureInfo_v2(stream_, &state, nullptr, nullptr, &nodes, &count);
  return asked == CUDA_SUCCESS && count == 1 ? *nodes : nullptr;
}

// The launch would run where its host does: before all that is younger than that.
Merge::Group* Merge::host_of(const SmallLaunch& launch) {
  auto group = groups_.rbegin();
  for (size_t i = 0; i < open_; ++i, ++group) {
    for (const SmallLaunch& known : group->launches)
      if (meet(known, launch)) return nullptr;
    if (alike(group->launches[0], launch)) return &*group;
  }
  return nullptr;
}

void Merge::add(const SmallLaunch& launch, const std::function<void()>& alone) {
  if (youngest() != last_) open_ = 0;
  if (Group* group = host_of(launch)) return group->launches.push_back(launch);
  alone();
  last_ = youngest();
  groups_.push_back({last_, {launch}});
  open_ = last_ ? open_ + 1 : 0;
}

std::unique_ptr<OwnMemory> Merge::finish() {
  groups_.remove_if([](const Group& g) { return g.launches.size() < 2; });
  std::vector<uint64_t> words;  // rows of the tables
  for (const Group& g : groups_) {
    unsigned blocks = 0;
    for (const SmallLaunch& l : g.launches) {
      words.insert(words.end(), l.addresses.begin(), l.addresses.end());
      words.insert(words.end(), l.numbers.begin(), l.numbers.end());
      words.push_back(blocks);
      blocks += l.blocks;
    }
  }
  if (words.empty()) return nullptr;
  auto memory = std::make_unique<OwnMemory>(words.size() * sizeof(uint64_t));
  const OwnStream stream;
  ORR_DRIVER(cuMemcpyAsync, memory->get(), reinterpret_cast<CUdeviceptr>(words.data()),
             words.size() * sizeof(uint64_t), stream.get());
  stream.drain();
  CUdeviceptr table = memory->get();
  for (const Group& g : groups_) {
    const SmallLaunch& first = g.launches[0];
    auto rows = static_cast<unsigned>(g.launches.size());
    void* arguments[] = {&table, &rows};
    CUDA_KERNEL_NODE_PARAMS changed{};
    changed.func = first.many, changed.kernelParams = arguments;
    for (const SmallLaunch& l : g.launches) changed.gridDimX += l.blocks;
    changed.blockDimX = first.threads, changed.sharedMemBytes = first.shared;
    changed.gridDimY = changed.gridDimZ = changed.blockDimY = changed.blockDimZ = 1;
    ORR_DRIVER(cuGraphKernelNodeSetParams, g.node, &changed);
    table += rows * (first.addresses.size() + first.numbers.size() + 1) * sizeof(uint64_t);
  }
  return memory;
}

}  // namespace orr_cuda
