// SPDX-License-Identifier: Apache-2.0
//
// The CUDA driver's functions that the plugin and the tests call, over Stream and memory.
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "driver.h"
#include "group.h"
#include "memory.h"
#include "misuse.h"
#include "stream.h"

struct CUctx_st {
  int device;
  std::atomic<int> users;
};
struct CUevent_st {
  fake::Stream* stream = nullptr;
  uint64_t number = 0;
  bool captured = false;
  fake::Stream::Known known;
  std::shared_ptr<std::atomic<int64_t>> time;  // of its place in the stream; null: not asked for
};

namespace fake {
namespace {

thread_local CUcontext current = nullptr;

int devices() {
  const char* named = std::getenv("FAKE_NCCL_GPUS");
  return named ? std::atoi(named) : 8;
}

// FAKE_CUDA_FAULT=NAME:N plants a fault: the call of NAME fails from the N-th time on.
bool is_planted(const char* what) {
  static const char* const fault = std::getenv("FAKE_CUDA_FAULT");
  const size_t length = std::strlen(what);
  return fault && std::strncmp(fault, what, length) == 0 && fault[length] == ':' &&
         calls(what) >= std::strtoull(fault + length + 1, nullptr, 10);
}

// What every call checks. `synchronises`: its answer tells about the order of things on a stream.
CUresult enter(const char* what, bool synchronises = false) {
  note_call(what);
  if (in_callback) misuse("call from a stream callback", what);
  if (synchronises && before_question) before_question(what);
  if (is_planted(what)) return CUDA_ERROR_LAUNCH_FAILED;
  return current ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

std::atomic<int64_t> pretended_ns{0};

int64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() + pretended_ns;
}

uint64_t sum_of(const char* p, size_t n) {
  uint64_t h = n, word = 0;
  for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
    std::memcpy(&word, p, sizeof word);
    h = h * 31 + word;
  }
  word = 0;
  std::memcpy(&word, p, n);
  return h * 31 + word;
}

}  // namespace

thread_local int captures = 0;
void (*before_question)(const char* what) = nullptr;

CUresult enter_driver(const char* what) { return enter(what); }

void pretend(int64_t ns) { pretended_ns += ns; }

void forbid_in_capture(const char* what) {
  if (captures > 0) misuse("call that a capture forbids", what);
}

// A stand-in for the default stream.
Stream& stream_of(CUstream s) {
  static Stream& usual = *new Stream;
  return s ? *s : usual;
}

int current_device() { return current ? current->device : 0; }
Stream& stream_behind(void* s) { return stream_of(static_cast<CUstream>(s)); }

}  // namespace fake

using namespace fake;

extern "C" {

CUresult cuInit(unsigned) { return CUDA_SUCCESS; }

CUresult cuGetErrorString(CUresult code, const char** text) {
  *text = code == CUDA_SUCCESS                 ? "no error"
          : code == CUDA_ERROR_INVALID_CONTEXT ? "invalid device context"
                                               : "error of the fake driver";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* n) {
  *n = devices();
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  std::memset(uuid, 0, sizeof *uuid);
  snprintf(uuid->bytes, sizeof uuid->bytes, "fake GPU %d", device);
  return CUDA_SUCCESS;
}

// One for all users of a device in the process.
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  static CUctx_st& only = *new CUctx_st{device, 0};
  if (only.device != device && only.users > 0)
    misuse("two devices in one process", "cuDevicePrimaryCtxRetain");
  only.device = device, ++only.users;
  *context = &only;
  return CUDA_SUCCESS;
}

// The last one to let go of it takes it away.
CUresult cuDevicePrimaryCtxRelease(CUdevice) {
  if (--current->users == 0) current = nullptr;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  current = context;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  *stream = new CUstream_st;
  return enter("cuStreamCreate");
}

CUresult cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0, *highest = -5;
  return enter("cuCtxGetStreamPriorityRange");
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned, int priority) {
  *stream = new CUstream_st;
  (*stream)->urgent = priority == -5;
  return enter("cuStreamCreateWithPriority");
}

CUresult cuStreamDestroy(CUstream stream) {
  delete stream;
  return enter("cuStreamDestroy");
}

CUresult cuStreamQuery(CUstream stream) {
  if (const CUresult r = enter("cuStreamQuery", true)) return r;
  forbid_in_capture("cuStreamQuery");
  return stream_of(stream).idle() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  if (const CUresult r = enter("cuStreamWaitEvent", true)) return r;
  if (!event->stream) return CUDA_SUCCESS;
  if (event->captured != stream_of(stream).captured() || event->captured)
    misuse("capture with more than one stream", "cuStreamWaitEvent");
  stream_of(stream).learn(event->known);
  stream_of(stream).enqueue("cuStreamWaitEvent", {},
                            [from = event->stream, number = event->number] {
                              while (from->done() < number) std::this_thread::yield();
                            });
  return CUDA_SUCCESS;
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void* data) {
  if (const CUresult r = enter("cuLaunchHostFunc")) return r;
  stream_of(stream).enqueue("cuLaunchHostFunc", {}, [=] {
    in_callback = true;
    call(data);
    in_callback = false;
  });
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  *event = new CUevent_st;
  if (!(flags & CU_EVENT_DISABLE_TIMING))
    (*event)->time = std::make_shared<std::atomic<int64_t>>(0);
  return enter("cuEventCreate");
}

CUresult cuEventDestroy(CUevent event) {
  delete event;
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  if (const CUresult r = enter("cuEventRecord", true)) return r;
  Stream& s = stream_of(stream);
  if (event->time) s.enqueue("cuEventRecord", {}, [time = event->time] { *time = now_ns(); });
  event->stream = &s;
  event->captured = s.captured();
  event->known = s.known();
  event->number = event->known[&s];
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  if (const CUresult r = enter("cuEventElapsedTime", true)) return r;
  for (CUevent e : {begin, end})
    if (!e->time || !e->stream || e->stream->done() < e->number) return CUDA_ERROR_NOT_READY;
  *ms = static_cast<float>(*end->time - *begin->time) * 1e-6f;
  return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
  if (const CUresult r = enter("cuEventQuery", true)) return r;
  forbid_in_capture("cuEventQuery");
  if (event->captured) misuse("captured event asked for", "cuEventQuery");
  return !event->stream || event->stream->done() >= event->number ? CUDA_SUCCESS
                                                                  : CUDA_ERROR_NOT_READY;
}

CUresult cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  forbid_in_capture("cuMemAlloc");
  *address = memory::allocate(bytes, false);
  return *address ? enter("cuMemAlloc") : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree(CUdeviceptr address) {
  forbid_in_capture("cuMemFree");
  memory::release(address, false);
  return enter("cuMemFree");
}

CUresult cuMemAllocHost(void** address, size_t bytes) {
  *address = memory::allocate_pinned(bytes);
  return enter("cuMemAllocHost");
}

CUresult cuMemFreeHost(void* address) {
  memory::release_pinned(address);
  return enter("cuMemFreeHost");
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  if (const CUresult r = enter("cuMemcpyHtoDAsync")) return r;
  memory::need_pinned(from, bytes, "cuMemcpyHtoDAsync");
  char* place = memory::behind(reinterpret_cast<void*>(to), bytes, "cuMemcpyHtoDAsync");
  char* source = static_cast<char*>(const_cast<void*>(from));
  const uint64_t before = sum_of(source, bytes);
  stream_of(stream).enqueue("cuMemcpyHtoDAsync", {{place, bytes, true}, {source, bytes, false}},
                            [=] {
                              if (sum_of(source, bytes) != before)
                                misuse("memory overwritten in use",
                                       "the source of cuMemcpyHtoDAsync changed before it ran");
                              std::memcpy(place, source, bytes);
                            });
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  if (const CUresult r = enter("cuMemcpyDtoHAsync")) return r;
  memory::need_pinned(to, bytes, "cuMemcpyDtoHAsync");
  char* place = memory::behind(reinterpret_cast<void*>(from), bytes, "cuMemcpyDtoHAsync");
  char* target = static_cast<char*>(to);
  stream_of(stream).enqueue("cuMemcpyDtoHAsync", {{place, bytes, false}, {target, bytes, true}},
                            [=] { std::memcpy(target, place, bytes); });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  if (const CUresult r = enter("cuMemsetD8Async")) return r;
  char* place = memory::behind(reinterpret_cast<void*>(to), bytes, "cuMemsetD8Async");
  stream_of(stream).enqueue("cuMemsetD8Async", {{place, bytes, true}},
                            [=] { std::memset(place, value, bytes); });
  return CUDA_SUCCESS;
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  if (const CUresult r = enter("cuMemsetD2D8Async")) return r;
  const size_t bytes = (height - 1) * pitch + width;
  char* place = memory::behind(reinterpret_cast<void*>(to), bytes, "cuMemsetD2D8Async");
  stream_of(stream).enqueue("cuMemsetD2D8Async", {{place, bytes, true}}, [=] {
    for (size_t row = 0; row < height; ++row) std::memset(place + row * pitch, value, width);
  });
  return CUDA_SUCCESS;
}

}  // extern "C"
