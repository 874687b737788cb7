// SPDX-License-Identifier: Apache-2.0
//
// One GPU as the backend uses it: a stream for its own work, and memory. The context is the
// device's primary one, which NCCL and any kernel plugin use too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "library.h"

namespace nccl {

class Device {
 public:
  // The GPU of a rank: local_rank modulo the devices that the driver shows. Throws orr::Error.
  explicit Device(int local_rank);
  ~Device();
  Device(const Device&) = delete;

  // Makes the device the calling thread's. Before any other call on this thread.
  void enter() const;
  CUstream stream() const { return stream_; }
  int devices() const { return devices_; }
  // The same text for the same GPU in every process and on every host; for no other.
  const std::string& identity() const { return identity_; }

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  int devices_ = 0;
  std::string identity_;
};

// A point in a stream.
class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  void record(CUstream stream);
  bool done() const;

 private:
  CUevent event_ = nullptr;
};

// A piece of host memory.
struct Span {
  char* data;
  int64_t bytes;
};

// Where host buffers pass on their way to and from the device. A slot is pinned memory, with device
// memory of the same size, and the event after its last use.
struct Slot {
  char* pinned = nullptr;
  CUdeviceptr device = 0;
  Event used;
  bool busy = false;
  std::vector<Span> to;  // who gets the pinned bytes, in order, once `used` is done
};

class Staging {
 public:
  static constexpr int64_t slot_bytes = 1 << 20;

  Staging();
  ~Staging();
  Staging(const Staging&) = delete;

  // The slots by turns: while one is in use, the other is filled or emptied.
  Slot& next() { return slots_[turn_ ^= 1]; }
  // Device memory of at least `bytes`. REQUIRES: nothing uses what an earlier call gave.
  CUdeviceptr ground(int64_t bytes);

 private:
  Slot slots_[2];
  int turn_ = 0;
  CUdeviceptr ground_ = 0;
  int64_t ground_bytes_ = 0;
};

inline void* pointer(CUdeviceptr p) { return reinterpret_cast<void*>(p); }
inline CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

}  // namespace nccl
