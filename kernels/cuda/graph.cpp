// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include <memory>

#include "device.h"
#include "merge.h"

namespace orr_cuda {
namespace {

struct Graph {
  ~Graph() {
    if (exec) driver().cuGraphExecDestroy(exec);
  }
  std::unique_ptr<OwnMemory> table;  // of its merged launches
  CUgraphExec exec = nullptr;
};

CUstream of(orr_stream* stream) { return reinterpret_cast<CUstream>(stream); }

}  // namespace

// Other threads (a comm backend's) go on as they like meanwhile.
orr_status* capture_begin(void*, orr_stream* stream) {
  return on_device([&] {
    ORR_DRIVER(cuStreamBeginCapture, of(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    recordings().insert_or_assign(of(stream), Merge(of(stream)));  // one may have been given up
  });
}

orr_status* capture_end(void*, orr_stream* stream, orr_graph** out) {
  return on_device([&] {
    auto recording = recordings().extract(of(stream));
    CUgraph recorded = nullptr;
    ORR_DRIVER(cuStreamEndCapture, of(stream), &recorded);
    const std::unique_ptr<CUgraph_st, CUresult (*)(CUgraph)> owned(recorded,
                                                                   driver().cuGraphDestroy);
    auto graph = std::make_unique<Graph>();
    if (recording) graph->table = recording.mapped().finish();
    ORR_DRIVER(cuGraphInstantiate, &graph->exec, recorded, 0);
    *out = reinterpret_cast<orr_graph*>(graph.release());
  });
}

orr_status* graph_launch(void*, orr_graph* graph, orr_stream* stream) {
  return on_device(
      [&] { ORR_DRIVER(cuGraphLaunch, reinterpret_cast<Graph*>(graph)->exec, of(stream)); });
}

void graph_destroy(void*, orr_graph* graph) { delete reinterpret_cast<Graph*>(graph); }

}  // namespace orr_cuda
