// SPDX-License-Identifier: Apache-2.0
//
// What the parts of the fake driver share.
#pragma once

#include <cuda.h>

#include "stream.h"

struct CUstream_st : fake::Stream {
  bool urgent = false;  // its work goes first
};

namespace fake {

// What every call does first: counts itself and looks for a context.
CUresult enter_driver(const char* what);

// Lets the clock of events go on, as if the work that runs now took so long. [any thread]
void pretend(int64_t ns);

// How many captures the calling thread has begun.
extern thread_local int captures;
// misuse if there is one.
void forbid_in_capture(const char* what);

// Called before every question about the order of things on streams: a library over the driver may
// forbid them for a while.
extern void (*before_question)(const char* what);

Stream& stream_of(CUstream stream);

}  // namespace fake
