// SPDX-License-Identifier: Apache-2.0
//
// The stream, event and recording slots of device/1. An orr_stream is a CUstream, an orr_event a
// CUevent, an orr_graph a Graph of stream.cpp.
#pragma once

#include <cuda.h>
#include <orrery/device.h>

#include "driver.h"

namespace orr_cuda {

orr_status* stream_create(void*, orr_stream** out);
orr_status* stream_create_urgent(void*, orr_stream** out);
void stream_destroy(void*, orr_stream* stream);
orr_status* event_create(void*, orr_event** out);
void event_destroy(void*, orr_event* event);
orr_status* event_record(void*, orr_event* event, orr_stream* stream);
orr_status* stream_wait(void*, orr_stream* stream, orr_event* event);
orr_status* event_sync(void*, orr_event* event, int64_t deadline_ns);
orr_status* capture_begin(void*, orr_stream* stream);
orr_status* capture_end(void*, orr_stream* stream, orr_graph** out);
orr_status* graph_launch(void*, orr_graph* graph, orr_stream* stream);
void graph_destroy(void*, orr_graph* graph);

inline CUstream of(orr_stream* stream) { return reinterpret_cast<CUstream>(stream); }
DriverObject<CUevent> new_event(unsigned flags);

// Waits until the event is done. Throws orr::Error (ORR_DEADLINE) after `deadline_ns`.
void await(CUevent event, int64_t deadline_ns);

// A stream for the plugin's own work outside of steps, and how long that may take.
constexpr int64_t own_deadline = 60'000'000'000;
class OwnStream {
 public:
  OwnStream();
  CUstream get() const { return stream_.get(); }
  void drain() const;  // waits for all enqueued work

 private:
  DriverObject<CUstream> stream_;
  DriverObject<CUevent> event_;
};

}  // namespace orr_cuda
