// SPDX-License-Identifier: Apache-2.0
//
// Formats that are known by some of their bytes: a reader of numbers without a header would take
// them for numbers, and one of text for text.
#pragma once

#include "bytes.h"

namespace data {

// Throws Error, which says what the file is, if that is known: "it is a .npy file, not `expected`".
void refuse_formats(const Bytes& file, const char* expected);

}  // namespace data
