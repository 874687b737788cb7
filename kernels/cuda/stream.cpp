// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "device.h"
#include "late.h"
#include "merge.h"
#include "modules.h"

namespace orr_cuda {
namespace {

using Clock = std::chrono::steady_clock;

// Steps of small models end within this time: waiting awake costs less than waking.
constexpr std::chrono::microseconds awake{200}, nap{20};
// Between two looks: what took longer was a pause of this very process, and is no sign of the
// GPU's.
constexpr std::chrono::milliseconds longest_look{50};

struct Graph {
  std::unique_ptr<OwnMemory> table;  // of its merged launches
  DriverObject<CUgraphExec> exec;
};

CUevent of(orr_event* event) { return reinterpret_cast<CUevent>(event); }

CUstream new_stream(int priority) {
  CUstream stream = nullptr;
  ORR_DRIVER(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, priority);
  return stream;
}

}  // namespace

DriverObject<CUevent> new_event(unsigned flags) {
  CUevent event = nullptr;
  ORR_DRIVER(cuEventCreate, &event, flags);
  return {event, driver().cuEventDestroy};
}

void await(CUevent event, int64_t deadline_ns) {
  Clock::duration waited{};
  for (Clock::time_point last = Clock::now();;) {
    const CUresult state = driver().cuEventQuery(event);
    if (state == CUDA_SUCCESS) return;
    if (state != CUDA_ERROR_NOT_READY) check(state, "work on the GPU");
    const Clock::time_point now = Clock::now();
    waited += std::min<Clock::duration>(now - std::exchange(last, now), longest_look);
    if (waited > std::chrono::nanoseconds(deadline_ns))
      throw orr::Error(ORR_DEADLINE, "the GPU has not finished its work within " +
                                         std::to_string(static_cast<double>(deadline_ns) * 1e-9) +
                                         " s");
    if (waited < awake)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(nap);
  }
}

orr_status* stream_create(void*, orr_stream** out) {
  return on_device([&] { *out = reinterpret_cast<orr_stream*>(new_stream(0)); });
}

orr_status* stream_create_urgent(void*, orr_stream** out) {
  return on_device([&] {
    int lowest = 0, highest = 0;
    ORR_DRIVER(cuCtxGetStreamPriorityRange, &lowest, &highest);
    *out = reinterpret_cast<orr_stream*>(new_stream(highest));
  });
}

void stream_destroy(void*, orr_stream* stream) {
  if (stream) driver().cuStreamDestroy(of(stream));
}

orr_status* event_create(void*, orr_event** out) {
  return on_device(
      [&] { *out = reinterpret_cast<orr_event*>(new_event(CU_EVENT_DISABLE_TIMING).release()); });
}

void event_destroy(void*, orr_event* event) {
  if (event) driver().cuEventDestroy(of(event));
}

orr_status* event_record(void*, orr_event* event, orr_stream* stream) {
  return on_device([&] { ORR_DRIVER(cuEventRecord, of(event), of(stream)); });
}

orr_status* stream_wait(void*, orr_stream* stream, orr_event* event) {
  return on_device([&] { ORR_DRIVER(cuStreamWaitEvent, of(stream), of(event), 0); });
}

orr_status* event_sync(void*, orr_event* event, int64_t deadline_ns) {
  return on_device([&] {
    await(of(event), deadline_ns);
    throw_late();
  });
}

// Other threads (a comm backend's) go on as they like meanwhile.
orr_status* capture_begin(void*, orr_stream* stream) {
  return on_device([&] {
    load_requested();
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

OwnStream::OwnStream()
    : stream_(new_stream(0), driver().cuStreamDestroy),
      event_(new_event(CU_EVENT_DISABLE_TIMING)) {}

void OwnStream::drain() const {
  ORR_DRIVER(cuEventRecord, event_.get(), get());
  await(event_.get(), own_deadline);
}

}  // namespace orr_cuda
