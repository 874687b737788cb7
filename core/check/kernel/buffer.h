// SPDX-License-Identifier: Apache-2.0
//
// A tensor in memory with guard zones. Every byte that is no logical element, and every output
// element before the launch, is 0xff: a NaN in each real dtype. Of a device's memory the buffer has
// a copy, guard zones and all: `send` it before a launch, `fetch` it after.
#pragma once

#include <orrery/types.h>

#include <vector>

#include "check/kernel/device.h"
#include "check/kernel/harness.h"

namespace kernel_suite {

class Buffer {
 public:
  Buffer(const Device& device, uint64_t bytes);  // scratch
  // Shifted by so many elements, or by the next whole step of the device's alignment.
  Buffer(const Device& device, const orr_tensor& t, int64_t misalign_elements);
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
  template <class F>
  void each(F&& f) const;  // f(byte offset of each logical element)

  const Device& device_;
  orr_tensor tensor_{};
  uint64_t offset_, bytes_;
  std::vector<uint8_t> storage_;
  orr_memory memory_{};
  orr_memory* remote_ = nullptr;  // on the device, if that is not the host
};

}  // namespace kernel_suite
