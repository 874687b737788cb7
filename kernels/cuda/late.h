// SPDX-License-Identifier: Apache-2.0
//
// Errors that kernels find, on the host's side: which ops may report them, and the messages.
#pragma once

#include <orrery/kernel.h>

#include <cstring>
#include <string>
#include <utility>

#include "late_word.h"

namespace orr_cuda {

// A prepared op whose kernels may report errors: pass args() to them. `text` is the message,
// without the op's `where` and `kind`, in which {row} and {value} stand for what is reported.
// REQUIRES: the device is open. [main thread]
class LateSource {
 public:
  LateSource(const orr_op& op, const std::string& text);
  ~LateSource();
  LateSource(const LateSource&) = delete;
  LateSource& operator=(const LateSource&) = delete;

  LateArgs args() const;

 private:
  unsigned id_;
};

// The message of an index, or a label, outside of a table of n rows, or of n classes.
inline std::string outside(const char* index, int64_t n, const char* rows) {
  return std::string(index) + " {value} in row {row} is outside the " + std::to_string(n) + " " +
         rows + " (0.." + std::to_string(n - 1) + ")";
}

// A message with what was reported.
inline std::string filled(std::string text, const LateWord& report) {
  for (const auto& [name, n] : {std::pair{"{row}", report.row}, {"{value}", report.value}})
    if (const size_t at = text.find(name); at != text.npos)
      text.replace(at, std::strlen(name), std::to_string(n));
  return text;
}

// Throws orr::Error, ORR_INVALID, if a kernel has reported an error, and clears the report.
// [any thread]
void throw_late();

// Allocates the LateWord in memory of the open device. [main thread]
void open_late();

}  // namespace orr_cuda
