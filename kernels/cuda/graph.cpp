// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include <orrery/sdk/plugin.hpp>

#include "device.h"

namespace orr_cuda {

// Other threads (a comm backend's) go on as they like meanwhile.
orr_status* capture_begin(void*, orr_stream* stream) {
  return orr::guard([&] {
    enter();
    check(driver().cuStreamBeginCapture(reinterpret_cast<CUstream>(stream),
                                        CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
          "cuStreamBeginCapture");
  });
}

orr_status* capture_end(void*, orr_stream* stream, orr_graph** out) {
  return orr::guard([&] {
    enter();
    CUgraph graph = nullptr;
    CUgraphExec launchable = nullptr;
    check(driver().cuStreamEndCapture(reinterpret_cast<CUstream>(stream), &graph),
          "cuStreamEndCapture");
    const CUresult made = driver().cuGraphInstantiate(&launchable, graph, 0);
    driver().cuGraphDestroy(graph);
    check(made, "cuGraphInstantiate");
    *out = reinterpret_cast<orr_graph*>(launchable);
  });
}

orr_status* graph_launch(void*, orr_graph* graph, orr_stream* stream) {
  return orr::guard([&] {
    enter();
    check(driver().cuGraphLaunch(reinterpret_cast<CUgraphExec>(graph),
                                 reinterpret_cast<CUstream>(stream)),
          "cuGraphLaunch");
  });
}

void graph_destroy(void*, orr_graph* graph) {
  if (graph) driver().cuGraphExecDestroy(reinterpret_cast<CUgraphExec>(graph));
}

}  // namespace orr_cuda
