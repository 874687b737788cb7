// SPDX-License-Identifier: Apache-2.0
//
// A tensor in memory with guard zones. Every byte that is no logical element, and every output
// element before the launch, is 0xff: a NaN in each real dtype.
#pragma once

#include <orrery/types.h>

#include <vector>

#include "check/kernel/harness.h"

namespace kernel_suite {

class Buffer {
 public:
  explicit Buffer(uint64_t bytes);  // scratch
  Buffer(const orr_tensor& t, int64_t misalign_elements);
  Buffer(const Buffer&) = delete;

  void write(const Values& values);
  Values read() const;
  std::vector<uint8_t> bits() const;
  bool intact() const;  // nothing but logical elements was written
  orr_buffer view() const;

 private:
  template <class F>
  void each(F&& f) const;  // f(byte offset of each logical element)

  orr_tensor tensor_{};
  uint64_t offset_, bytes_;
  std::vector<uint8_t> storage_;
  orr_memory memory_{};
};

}  // namespace kernel_suite
