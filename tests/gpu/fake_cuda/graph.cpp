// SPDX-License-Identifier: Apache-2.0
//
// Captures of one stream and their graphs, which run as they were recorded. A node is an operation.
#include <cuda.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "fake_nccl/driver.h"
#include "fake_nccl/misuse.h"

struct CUgraph_st {
  fake::Stream::Kept operations;
};
struct CUgraphExec_st {
  std::vector<fake::Stream::Operation> operations;
};

using namespace fake;

namespace {

// FAKE_CUDA_GRAPHS names a file that gets a line for each graph: its nodes, by the names of their
// functions.
void note(const CUgraph_st& graph) {
  const char* file = std::getenv("FAKE_CUDA_GRAPHS");
  if (!file) return;
  std::string line;
  for (const auto& op : graph.operations) line += (line.empty() ? "" : " ") + op->what;
  std::ofstream(file, std::ios::app) << line << std::endl;
}

}  // namespace

extern "C" {

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  if (const CUresult r = enter_driver("cuStreamBeginCapture")) return r;
  if (!stream) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (stream->captured()) return CUDA_ERROR_ILLEGAL_STATE;
  ++captures;
  stream->begin_capture();
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  if (const CUresult r = enter_driver("cuStreamEndCapture")) return r;
  if (!stream->captured() || captures == 0) return CUDA_ERROR_ILLEGAL_STATE;
  --captures;
  *graph = new CUgraph_st{stream->end_capture()};
  return CUDA_SUCCESS;
}

// The nodes that the stream's next one will follow.
CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* state, cuuint64_t*,
                                   CUgraph*, const CUgraphNode** nodes, size_t* count) {
  static thread_local CUgraphNode youngest;
  youngest = reinterpret_cast<CUgraphNode>(stream->youngest_kept());
  *state = stream->captured() ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  *nodes = &youngest, *count = youngest ? 1 : 0;
  return enter_driver("cuStreamGetCaptureInfo_v2");
}

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long) {
  *exec = new CUgraphExec_st;
  for (const auto& op : graph->operations) (*exec)->operations.push_back(*op);
  note(*graph);
  return enter_driver("cuGraphInstantiate");
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  if (const CUresult r = enter_driver("cuGraphLaunch")) return r;
  for (const Stream::Operation& op : exec->operations)
    stream_of(stream).enqueue(op.what, op.ranges, op.run);
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph) {
  delete graph;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
  delete exec;
  return CUDA_SUCCESS;
}

}  // extern "C"
