// SPDX-License-Identifier: Apache-2.0
//
// Opens a dataset of a file of HDF5 that can be read by itself.
#pragma once

#include "library.h"

namespace data {

// Throws Error, which begins with `subject`, for what is no dataset, for one that lies in other
// files, and for one packed in a way, or in chunks of a size, that cannot be read here. REQUIRES: a
// Turn.
HeldSet opened_set(hid_t file, const std::string& dataset, const std::string& subject);

}  // namespace data
