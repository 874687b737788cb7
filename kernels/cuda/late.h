// SPDX-License-Identifier: Apache-2.0
//
// Errors that kernels find, on the host's side: which ops may report them, and the messages.
#pragma once

#include <cuda.h>
#include <orrery/kernel.h>

#include <functional>
#include <string>

#include "late_word.h"

namespace orr_cuda {

// A prepared op whose kernels may report errors: pass args() to them. `text` makes the message from
// row and value; the op's `where` is put in front. REQUIRES: the device is open. [main thread]
class LateSource {
 public:
  using Text = std::function<std::string(long long row, long long value)>;

  LateSource(const orr_op& op, Text text);
  ~LateSource();
  LateSource(const LateSource&) = delete;
  LateSource& operator=(const LateSource&) = delete;

  LateArgs args() const;

 private:
  unsigned id_;
};

// The message of an index outside of a table.
inline LateSource::Text bad_index(const std::string& kind, int64_t rows) {
  return [=](long long row, long long index) {
    return kind + ": index " + std::to_string(index) + " in row " + std::to_string(row) +
           " is outside the " + std::to_string(rows) + " rows of the table (0.." +
           std::to_string(rows - 1) + ")";
  };
}

// Throws orr::Error, ORR_INVALID, if a kernel has reported an error, and clears the report.
// [any thread]
void throw_late();

// Allocates the LateWord in memory of the open device. [main thread]
void open_late();

}  // namespace orr_cuda
