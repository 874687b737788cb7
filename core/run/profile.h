// SPDX-License-Identifier: Apache-2.0
//
// Measures where the time of a run went: in work that is done once, such as tracing, and in ops, by
// their shapes. The first run of every program is left out, because it also pays for fresh memory.
// [main thread]
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "lower/rank_plan.h"

namespace orrery {

class Profile {
 public:
  struct Row {
    int64_t calls = 0;
    double seconds = 0;
    Cost cost;
  };

  // Adds the time from its construction to its destruction to a row; does nothing if that is null.
  class Timer {
   public:
    explicit Timer(Row* row, const Cost& cost = {}) : row_(row), cost_(cost) {
      if (row_) begin_ = Clock::now();
    }
    ~Timer() {
      if (!row_) return;
      row_->seconds += std::chrono::duration<double>(Clock::now() - begin_).count();
      row_->cost.flops += cost_.flops, row_->cost.bytes += cost_.bytes;
      ++row_->calls;
    }
    Timer(const Timer&) = delete;

   private:
    using Clock = std::chrono::steady_clock;
    Row* row_;
    Cost cost_;
    Clock::time_point begin_;
  };

  static Profile& get();

  // Must be called before the first program is made; without it nothing is timed.
  void turn_on() { on_ = true; }
  bool on() const { return on_; }

  // The row of launches with this op and these shapes; the reference stays valid.
  Row& row(const Launch& launch);
  Row& waiting() { return rows_["waiting for communication"]; }
  Row& programs() { return programs_; }  // whole runs
  // The row of work that is done once before a program can run, such as "tracing"; null when
  // nothing is timed.
  Row* once(const std::string& what) { return on_ ? &once_[what] : nullptr; }

  // Adds a sentence to the end of the table; the same sentence only once.
  void note(const std::string& sentence) { notes_.insert(sentence); }

  // The table, the slowest rows first.
  std::string text() const;

 private:
  std::map<std::string, Row> rows_, once_;
  std::set<std::string> notes_;
  Row programs_;
  bool on_ = false;
};

}  // namespace orrery
