// SPDX-License-Identifier: Apache-2.0
#include "merge.h"

#include <algorithm>

#include "stream.h"

namespace orr_cuda {
namespace {

bool touches(const auto& ranges, CUdeviceptr begin, uint64_t bytes) {
  return std::ranges::any_of(
      ranges, [&](const auto& r) { return begin < r.end && r.begin < begin + bytes; });
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

bool Merge::meet(const Group& group, const PointwiseLaunch& launch) {
  for (size_t t = 0; t < launch.addresses.size(); ++t) {
    const CUdeviceptr begin = launch.addresses[t];
    if (touches(group.written, begin, launch.bytes[t])) return true;
    if (t >= launch.inputs && touches(group.read, begin, launch.bytes[t])) return true;
  }
  return false;
}

// The launch would run where its host does: before all that is younger than that.
Merge::Group* Merge::host_of(const PointwiseLaunch& launch) {
  auto group = groups_.rbegin();
  for (size_t i = 0; i < open_; ++i, ++group) {
    if (meet(*group, launch)) return nullptr;
    if (launch.many && group->many == launch.many) return &*group;
  }
  return nullptr;
}

void Merge::take_in(Group& group, const PointwiseLaunch& launch) {
  group.table.insert(group.table.end(), launch.addresses.begin(), launch.addresses.end());
  group.table.insert(group.table.end(), {launch.elements, group.blocks});
  group.blocks += launch.blocks, ++group.rows;
  for (size_t t = 0; t < launch.addresses.size(); ++t) {
    const CUdeviceptr begin = launch.addresses[t];
    (t < launch.inputs ? group.read : group.written).push_back({begin, begin + launch.bytes[t]});
  }
}

void Merge::add(const PointwiseLaunch& launch, const std::function<void()>& alone) {
  if (youngest() != last_) open_ = 0;
  if (Group* group = host_of(launch)) return take_in(*group, launch);
  alone();
  last_ = youngest();
  groups_.push_back({last_, launch.many, launch.threads, 0, 0, {}, {}, {}});
  take_in(groups_.back(), launch);
  open_ = last_ ? open_ + 1 : 0;
}

std::unique_ptr<OwnMemory> Merge::finish() {
  groups_.remove_if([](const Group& g) { return g.rows < 2; });
  std::vector<uint64_t> words;
  for (const Group& g : groups_) words.insert(words.end(), g.table.begin(), g.table.end());
  if (words.empty()) return nullptr;
  auto memory = std::make_unique<OwnMemory>(words.size() * sizeof(uint64_t));
  const OwnStream stream;
  ORR_DRIVER(cuMemcpyAsync, memory->get(), reinterpret_cast<CUdeviceptr>(words.data()),
             words.size() * sizeof(uint64_t), stream.get());
  stream.drain();
  CUdeviceptr table = memory->get();
  for (Group& g : groups_) {
    void* arguments[] = {&table, &g.rows};
    CUDA_KERNEL_NODE_PARAMS changed{};
    changed.func = g.many, changed.kernelParams = arguments;
    changed.gridDimX = g.blocks, changed.blockDimX = g.threads;
    changed.gridDimY = changed.gridDimZ = changed.blockDimY = changed.blockDimZ = 1;
    ORR_DRIVER(cuGraphKernelNodeSetParams, g.node, &changed);
    table += g.table.size() * sizeof(uint64_t);
  }
  return memory;
}

}  // namespace orr_cuda
