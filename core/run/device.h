// SPDX-License-Identifier: Apache-2.0
//
// The device that this process computes on (the host, or one that a plugin serves), its streams and
// its events. The host has no streams: work on it is done when its call returns.
#pragma once

#include <orrery/device.h>

#include <cstddef>
#include <memory>
#include <string>

#include "launch/environment.h"

namespace orrery {

class Device {
 public:
  // Fetches the device's table; `open` then takes possession of the device.
  explicit Device(const std::string& name);
  Device(const Device&) = delete;

  const std::string& name() const { return name_; }
  // Whether tensors lie in ordinary memory, and there are no streams.
  bool is_host() const { return is_host_; }
  const orr_device_api& api() const { return api_; }
  uint64_t alignment() const { return alignment_; }  // of buffers, a power of two. REQUIRES: open
  // Throws Error that says what is missing. Called once, before any function below. [main thread]
  void open(const World& world);

  // Allocates zeroed memory for kernels (`memory`), or pinned memory of the host, which the device
  // copies from and to (`pinned`). `what` is for messages. The memory may outlive this object.
  // [main thread]
  std::shared_ptr<const orr_memory> memory(uint64_t bytes, const std::string& what) const;
  std::shared_ptr<const orr_memory> pinned(uint64_t bytes, const std::string& what) const;

  // Copies bytes to and from ordinary memory. REQUIRES: no work on these bytes is pending.
  // [main thread]
  void read(std::byte* to, const orr_buffer& from) const;
  void write(const orr_buffer& to, const std::byte* from) const;

 private:
  std::shared_ptr<const orr_memory> allocate(int32_t tier, uint64_t bytes,
                                             const std::string& what) const;
  void copy(const orr_buffer& to, const orr_buffer& from) const;

  std::string name_;
  const orr_device_api& api_;
  bool is_host_;
  uint64_t alignment_ = 64;
};

class Stream;

class Event {
 public:
  explicit Event(const Device& device);
  ~Event();
  Event(Event&& other) noexcept;
  orr_event* get() const { return event_; }
  void record(const Stream& stream);
  // Returns when all work that was enqueued before `record` is done. Throws the first error of that
  // work, or an error if the job's deadline passes.
  void sync() const;

 private:
  const Device& device_;
  orr_event* event_ = nullptr;
};

class Stream {
 public:
  // An urgent one is for messages: its work goes first where the device can do that.
  explicit Stream(const Device& device, bool urgent = false);
  ~Stream();
  Stream(const Stream&) = delete;
  orr_stream* get() const { return stream_; }
  void wait(const Event& event) const;  // makes later work of this stream wait for the event
  void copy(const orr_buffer& to, const orr_buffer& from) const;

 private:
  const Device& device_;
  orr_stream* stream_ = nullptr;
};

}  // namespace orrery
