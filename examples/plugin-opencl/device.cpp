// SPDX-License-Identifier: Apache-2.0
//
// device/1: buffers, in-order queues as streams, events. Pinned memory is ordinary memory that
// copies read and write while the host goes on.
#include <time.h>

#include <cstdlib>
#include <cstring>

#include <orrery/sdk/plugin.hpp>

#include "faults.h"
#include "tables.h"

struct orr_event {
  cl_event done = nullptr;  // null: never recorded
};

namespace ocl {
namespace {

cl_command_queue queue_of(orr_stream* stream) { return reinterpret_cast<cl_command_queue>(stream); }
cl_mem memory_of(const orr_buffer* b) { return static_cast<cl_mem>(b->memory->native); }

orr_status* facts(void*, orr_device_facts* out) {
  return orr::guard([&] {
    const Facts known = known_facts();
    *out = {};
    out->size = sizeof *out;
    orr::copy_text(out->name, "opencl");
    orr::copy_text(out->model, known.name);
    out->memory = known.memory;
    out->alignment = 64;
  });
}

orr_status* open(void*, int32_t local_rank, int32_t) {
  return orr::guard([&] { Machine::open(local_rank); });
}

cl_mem make_zeroed(uint64_t bytes) {
  Machine& m = Machine::get();
  if (bytes > m.facts().largest)
    throw orr::Error(ORR_FAILED, "opencl: " + std::to_string(bytes) +
                                     " bytes in one buffer are more than the device's " +
                                     std::to_string(m.facts().largest) +
                                     ": use a smaller batch or more ranks");
  cl_int code;
  cl_mem made = clCreateBuffer(m.context(), CL_MEM_READ_WRITE, bytes, nullptr, &code);
  check(code, "clCreateBuffer");
  const char zero = 0;
  check(clEnqueueFillBuffer(m.own(), made, &zero, 1, 0, bytes, 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
  check(clFinish(m.own()), "clFinish");
  return made;
}

orr_status* allocate(void*, int32_t tier, uint64_t bytes, orr_memory** out) {
  return orr::guard([&] {
    if (tier != ORR_TIER_DEVICE && tier != ORR_TIER_PINNED)
      throw orr::Error(ORR_INVALID, "opencl: there is no memory of tier " + std::to_string(tier));
    auto* made =
        new orr_memory{sizeof(orr_memory), tier, bytes, nullptr, nullptr, "opencl", nullptr};
    const uint64_t some = bytes ? bytes : 1;
    try {
      if (tier == ORR_TIER_DEVICE)
        made->native = make_zeroed(some);
      else if (!(made->host = std::calloc(1, some)))
        throw orr::Error(ORR_FAILED, "opencl: no memory for " + std::to_string(bytes) + " bytes");
    } catch (...) {
      delete made;
      throw;
    }
    *out = made;
  });
}

void free_memory(void*, orr_memory* memory) {
  if (!memory) return;
  if (memory->native) clReleaseMemObject(static_cast<cl_mem>(memory->native));
  std::free(memory->host);
  delete memory;
}

orr_status* copy(void*, orr_stream* stream, const orr_buffer* to, const orr_buffer* from) {
  return orr::guard([&] {
    if (to->bytes != from->bytes)
      throw orr::Error(ORR_INVALID, "opencl: a copy between buffers of unequal bytes");
    if (to->bytes == 0) return;
    const cl_command_queue q = queue_of(stream);
    const bool here = from->memory->host, there = to->memory->host;
    if (!here && !there)
      return check(clEnqueueCopyBuffer(q, memory_of(from), memory_of(to), from->offset, to->offset,
                                       to->bytes, 0, nullptr, nullptr),
                   "clEnqueueCopyBuffer");
    if (here && !there)
      return check(clEnqueueWriteBuffer(q, memory_of(to), CL_FALSE, to->offset, to->bytes,
                                        orr_buffer_host(from), 0, nullptr, nullptr),
                   "clEnqueueWriteBuffer");
    if (!here)
      return check(clEnqueueReadBuffer(q, memory_of(from), CL_FALSE, from->offset, to->bytes,
                                       orr_buffer_host(to), 0, nullptr, nullptr),
                   "clEnqueueReadBuffer");
    check(clFinish(q), "clFinish");  // between the host's own, after what was enqueued
    std::memmove(orr_buffer_host(to), orr_buffer_host(from), to->bytes);
  });
}

orr_status* stream_create(void*, orr_stream** out) {
  return orr::guard([&] { *out = reinterpret_cast<orr_stream*>(Machine::get().make_queue()); });
}
void stream_destroy(void*, orr_stream* stream) {
  if (stream) clReleaseCommandQueue(queue_of(stream));
}

orr_status* event_create(void*, orr_event** out) {
  return orr::guard([&] { *out = new orr_event; });
}
void event_destroy(void*, orr_event* event) {
  if (event && event->done) clReleaseEvent(event->done);
  delete event;
}

orr_status* event_record(void*, orr_event* event, orr_stream* stream) {
  return orr::guard([&] {
    if (event->done) clReleaseEvent(event->done);
    event->done = nullptr;
    check(clEnqueueMarkerWithWaitList(queue_of(stream), 0, nullptr, &event->done),
          "clEnqueueMarkerWithWaitList");
    check(clFlush(queue_of(stream)), "clFlush");
  });
}

orr_status* stream_wait(void*, orr_stream* stream, orr_event* event) {
  return orr::guard([&] {
    if (!event->done) return;
    check(clEnqueueBarrierWithWaitList(queue_of(stream), 1, &event->done, nullptr),
          "clEnqueueBarrierWithWaitList");
  });
}

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

// OpenCL waits without a limit: the event is asked, at first without a pause.
void await(cl_event event, int64_t deadline_ns) {
  const int64_t begin = now_ns();
  for (int asked = 0;; ++asked) {
    cl_int state = CL_QUEUED;
    check(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr),
          "clGetEventInfo");
    if (state < 0) check(state, "enqueued work");
    if (state == CL_COMPLETE) return;
    if (now_ns() - begin > deadline_ns)
      throw orr::Error(ORR_DEADLINE, "opencl: the device has not finished within " +
                                         std::to_string(deadline_ns / 1000000000) + " s");
    const timespec pause{0, asked < 100 ? 1000 : 50000};
    nanosleep(&pause, nullptr);
  }
}

orr_status* event_sync(void*, orr_event* event, int64_t deadline_ns) {
  return orr::guard([&] {
    if (!event->done) return;
    await(event->done, deadline_ns);
    throw_fault();
  });
}

}  // namespace

// Nothing is recorded: OpenCL 1.2 has no command buffers.
const orr_device_api device_table = {sizeof(orr_device_api),
                                     nullptr,
                                     facts,
                                     allocate,
                                     free_memory,
                                     copy,
                                     stream_create,
                                     stream_destroy,
                                     event_create,
                                     event_destroy,
                                     event_record,
                                     stream_wait,
                                     event_sync,
                                     open,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr};

}  // namespace ocl
