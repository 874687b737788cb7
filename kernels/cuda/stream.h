// SPDX-License-Identifier: Apache-2.0
//
// The stream and event slots of device/1. An orr_stream is a CUstream, an orr_event a CUevent.
#pragma once

#include <cuda.h>
#include <orrery/device.h>

namespace orr_cuda {

orr_status* stream_create(void*, orr_stream** out);
orr_status* stream_create_urgent(void*, orr_stream** out);
void stream_destroy(void*, orr_stream* stream);
orr_status* event_create(void*, orr_event** out);
void event_destroy(void*, orr_event* event);
orr_status* event_record(void*, orr_event* event, orr_stream* stream);
orr_status* stream_wait(void*, orr_stream* stream, orr_event* event);
orr_status* event_sync(void*, orr_event* event, int64_t deadline_ns);

// Waits until the event is done. Throws orr::Error (ORR_DEADLINE) after `deadline_ns`.
void await(CUevent event, int64_t deadline_ns);

// A stream for the plugin's own work outside of steps, and how long that may take.
constexpr int64_t own_deadline = 60'000'000'000;
class OwnStream {
 public:
  OwnStream();
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  CUstream get() const { return stream_; }
  void drain() const;  // waits for all enqueued work

 private:
  CUstream stream_ = nullptr;
  CUevent event_ = nullptr;
};

}  // namespace orr_cuda
