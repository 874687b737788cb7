// SPDX-License-Identifier: Apache-2.0
#include "device.h"
#include "merge.h"
#include "stream.h"

namespace orr_cuda {
namespace {

struct Graph {
  std::unique_ptr<OwnMemory> table;  // of its merged launches
  DriverObject<CUgraphExec> exec;
};

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
    const DriverObject<CUgraph> owned(recorded, driver().cuGraphDestroy);
    auto table = recording ? recording.mapped().finish() : nullptr;
    CUgraphExec exec = nullptr;
    ORR_DRIVER(cuGraphInstantiate, &exec, recorded, 0);
    *out = reinterpret_cast<orr_graph*>(
        new Graph{std::move(table), {exec, driver().cuGraphExecDestroy}});
  });
}

orr_status* graph_launch(void*, orr_graph* graph, orr_stream* stream) {
  return on_device(
      [&] { ORR_DRIVER(cuGraphLaunch, reinterpret_cast<Graph*>(graph)->exec.get(), of(stream)); });
}

void graph_destroy(void*, orr_graph* graph) { delete reinterpret_cast<Graph*>(graph); }

}  // namespace orr_cuda
