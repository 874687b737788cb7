// SPDX-License-Identifier: Apache-2.0
//
// A tensor in memory with guard zones. Every byte that is no logical element, and every output
// element before the launch, is 0xff: a NaN in each real dtype. Behind an input lies a mebibyte
// that nobody may touch: who reads far beyond its end crashes; of most misaligned ones, who reads a
// byte. Of a device's memory the buffer has a copy, guard zones and all: `send` it before a launch,
// `fetch` it after.
#pragma once

#include <orrery/types.h>

#include <memory>
#include <span>
#include <vector>

#include "conformance/kernel/device.h"
#include "conformance/kernel/harness.h"

namespace kernel_suite {

// Bytes of 0xff right before a mebibyte without access.
class GuardPages {
 public:
  explicit GuardPages(uint64_t bytes);
  GuardPages(const GuardPages&) = delete;
  ~GuardPages();
  std::span<uint8_t> bytes() const { return bytes_; }

 private:
  void* begin_;
  uint64_t mapped_;
  std::span<uint8_t> bytes_;
};

class Buffer {
 public:
  Buffer(const Device& device, uint64_t bytes);  // scratch
  // Shifted by so many elements, or by the next whole step of the device's alignment.
  Buffer(const Device& device, const orr_tensor& t, int64_t misalign_elements, bool input);
  Buffer(const Buffer&) = delete;
  ~Buffer();

  void send();
  void fetch();

  void write(const Values& values);
  Values read() const;
  std::vector<uint8_t> bits() const;
  bool intact() const;  // nothing but logical elements was written
  orr_buffer view() const;

 private:
  Buffer(const Device& device, uint64_t bytes, uint64_t shift, uint64_t behind);
  template <class F>
  void each_row(
      F&& f) const;  // f(byte offset, elements of the last dim, bytes from one to the next)
  template <class F>
  void each(F&& f) const;  // f(byte offset of each logical element)

  const Device& device_;
  orr_tensor tensor_{};
  uint64_t offset_, bytes_;
  std::unique_ptr<GuardPages> pages_;
  std::span<uint8_t> storage_;  // in them
  orr_memory memory_{};
  orr_memory* remote_ = nullptr;  // on the device, if that is not the host
};

}  // namespace kernel_suite
