// SPDX-License-Identifier: Apache-2.0
//
// What a script records beside the numbers that its steps tell by themselves. Every rank may record
// the same, or rank 0 alone: it is rank 0 that tells the observers. [main thread]
#pragma once

#include <cstdint>
#include <string>

#include "program/state.h"

namespace orrery {

// Where a record belongs.
struct RecordPlace {
  std::string run;  // orr_event_record.run
  int64_t step = 0;
  std::string name;
};

// Begins the run for the observers of rank 0, if no step has. Throws Error. Where a script runs for
// its plan, nothing is recorded.
void record_number(const RecordPlace& place, double value);
void record_text(const RecordPlace& place, const std::string& text);
void record_histogram(const RecordPlace& place, const HostTensor& x);
// [H,W], [C,H,W] or [N,C,H,W] with 1, 3 or 4 channels, u8 or real from 0 to 1; several become the
// tiles of one image. Throws Error for others, with the name.
void record_image(const RecordPlace& place, const HostTensor& x);

}  // namespace orrery
