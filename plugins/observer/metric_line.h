// SPDX-License-Identifier: Apache-2.0
//
// The line of metrics.jsonl that is being made: numbers of one step. The time is that of the last.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "json_text.h"

namespace observer {

class MetricLine {
 public:
  // Whether a number belongs to the line: it has numbers of this step alone, and each name once.
  bool takes(int64_t step, std::string_view name) const {
    return names_.empty() || (step == step_ && !names_.contains(name));
  }

  // REQUIRES: takes(step, name).
  void add(int64_t step, double time, std::string_view name, double value) {
    step_ = step, time_ = time;
    names_.emplace(name);
    numbers_ += "," + quoted(name) + ":" + number(value);
  }

  bool empty() const { return names_.empty(); }
  double time() const { return time_; }

  // The line, with its end; the next one begins.
  std::string take() {
    names_.clear();
    return "{\"step\":" + std::to_string(step_) + ",\"time\":" + number(time_) +
           std::exchange(numbers_, {}) + "}\n";
  }

 private:
  int64_t step_ = 0;
  double time_ = 0;
  std::string numbers_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace observer
