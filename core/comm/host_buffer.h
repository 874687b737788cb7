// SPDX-License-Identifier: Apache-2.0
//
// Buffers in ordinary memory, for operations that are not part of a compiled program.
#pragma once

#include <orrery/comm.h>

#include <cstring>
#include <string>

#include "program/state.h"

namespace orrery {

// Borrows the bytes. Its buffers are valid as long as this object lives.
class HostBuffer {
 public:
  HostBuffer(void* data, size_t bytes) {
    memory_.size = sizeof memory_;
    memory_.tier = ORR_TIER_HOST;
    memory_.bytes = bytes;
    memory_.host = data;
    std::strcpy(memory_.native_kind, "host");
  }
  explicit HostBuffer(const HostTensor& t) : HostBuffer(t.bytes->data(), t.bytes->size()) {}
  HostBuffer(const HostBuffer&) = delete;

  orr_buffer all() const { return {&memory_, 0, memory_.bytes}; }

 private:
  orr_memory memory_{};
};

// An operation with these fields set. Borrows name and where.
inline orr_coll collective(int32_t op, int32_t dtype, const char* name, const std::string& where) {
  orr_coll c{};
  c.size = sizeof c;
  c.op = op;
  c.dtype = dtype;
  c.name = name;
  c.where = where.c_str();
  return c;
}

}  // namespace orrery
