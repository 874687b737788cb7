// SPDX-License-Identifier: Apache-2.0
//
// Formats that are known by their first bytes: a reader of raw numbers would take them for numbers.
#pragma once

#include "bytes.h"

namespace data {

// "a .npy file", or what else it begins as; null if that is nothing known.
const char* format_of(const Bytes& file);

}  // namespace data
