// SPDX-License-Identifier: Apache-2.0
//
// Where a kernel plugin under test works: a device opened for this process, with one stream. The
// device "host" has neither, and its memory is used in place.
#pragma once

#include <orrery/kernel.h>

#include <span>
#include <string>
#include <vector>

namespace kernel_suite {

class Device {
 public:
  // The device that the table names; lives as long as the process. Throws Error if no plugin serves
  // it, or if it cannot be opened here.
  static Device& of(const orr_kernel_api& kernel) { return of(kernel.device); }
  static Device& host() { return of("host"); }
  Device(const Device&) = delete;

  bool is_host() const { return host_; }
  bool records() const { return records_; }
  orr_stream* stream() const { return stream_; }
  // Of the buffers that a plan hands out; 1: any.
  uint64_t alignment() const { return alignment_; }

  // DEVICE memory. Never of "host".
  orr_memory* allocate(uint64_t bytes) const;
  void free(orr_memory* memory) const { api_.free(api_.self, memory); }
  // Whole allocations, finished at return. REQUIRES: bytes and memory have the same size.
  void put(std::span<const uint8_t> bytes, const orr_memory* memory) const;
  void get(const orr_memory* memory, std::span<uint8_t> bytes) const;

  // Waits for what was enqueued; the first error of that work, or NULL.
  orr_status* finish() const;
  // Runs what `enqueue` puts on the stream: at once, or recorded and then launched as a graph.
  template <class Enqueue>
  orr_status* run(bool recorded, Enqueue&& enqueue) const {
    if (!recorded) {
      orr_status* status = enqueue();
      return status ? status : finish();
    }
    if (orr_status* status = api_.capture_begin(api_.self, stream_)) return status;
    orr_status* status = enqueue();
    orr_graph* graph = nullptr;
    orr_status* end = api_.capture_end(api_.self, stream_, &graph);
    if (!status && !end) status = launch_graph(graph);
    return status ? status : end;
  }

 private:
  static Device& of(const std::string& name);
  explicit Device(const std::string& name);
  void copy(const orr_memory* to, const orr_memory* from, uint64_t bytes) const;
  orr_status* launch_graph(orr_graph* graph) const;

  const orr_device_api& api_;
  bool host_, records_ = false;
  uint64_t alignment_ = 64;
  orr_stream* stream_ = nullptr;
  orr_event* event_ = nullptr;
};

}  // namespace kernel_suite
