// SPDX-License-Identifier: Apache-2.0
//
// Groups of calls, one per thread, and the device that the thread has made its own.
#pragma once

#include "stream.h"

namespace fake {

// misuse if the calling thread has begun a group and not ended it.
void need_no_open_group(const char* who);

int current_device();
Stream& stream_behind(void* stream);

}  // namespace fake
