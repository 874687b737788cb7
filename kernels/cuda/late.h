// SPDX-License-Identifier: Apache-2.0
//
// Late errors on the host's side: who may report, and what the report becomes.
#pragma once

#include <cuda.h>
#include <orrery/kernel.h>

#include <functional>
#include <string>

#include "late_word.h"

namespace orr_cuda {

// One prepared op as a source of reports: pass word() (a LateWord*) and id() (an unsigned) to its
// kernels. `text` makes the message from row and value, without the op's `where`, which is put in
// front. REQUIRES: the device is open. [main thread]
class LateSource {
 public:
  using Text = std::function<std::string(long long row, long long value)>;

  LateSource(const orr_op& op, Text text);
  ~LateSource();
  LateSource(const LateSource&) = delete;
  LateSource& operator=(const LateSource&) = delete;

  CUdeviceptr word() const;
  unsigned id() const { return id_; }

 private:
  unsigned id_;
};

// Throws orr::Error, ORR_INVALID, if a kernel has reported, and forgets the report. [any thread]
void throw_late();

// Makes the word, in memory of the open device. [main thread]
void open_late();

}  // namespace orr_cuda
