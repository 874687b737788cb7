// SPDX-License-Identifier: Apache-2.0
//
// Which steps of a run that nobody asked to record are written: one in 5 ms at most, so that fast
// steps do not become slower by it, and the last one. What the script records is always written.
#pragma once

#include <orrery/observer.h>

#include <string>
#include <vector>

#include "glue.h"

namespace observer {

class Thinning {
 public:
  void begin(bool on) { *this = Thinning(), on_ = on; }

  // Calls write(event) if this METRIC or STEP_END is written now; otherwise keeps it until there is
  // a later step.
  template <class Write>
  void pass(const orr_event_record& event, Write&& write) {
    if (!on_ || detail(event) == "script") return write(event);
    if (event.step != step_) choose(event);
    if (taken_) return write(event);
    left_.push_back({event, event.text});
  }

  // Writes the last step, if it is left over.
  template <class Write>
  void end(Write&& write) {
    for (Left& one : left_) {
      one.event.text = one.text.c_str(), one.event.detail = one.event.run = "";
      write(one.event);
    }
    left_.clear();
  }

 private:
  struct Left {
    orr_event_record event;
    std::string text;
  };

  void choose(const orr_event_record& event) {
    constexpr double seconds = 0.005;
    step_ = event.step;
    taken_ = !(event.time >= last_ && event.time - last_ < seconds);
    if (taken_) last_ = event.time;
    left_.clear();
  }

  bool on_ = false, taken_ = true;
  int64_t step_ = -1;
  double last_ = -1e300;
  std::vector<Left> left_;
};

}  // namespace observer
