// SPDX-License-Identifier: Apache-2.0
//
// Files of servers that are read, and those of S3 that are written, for the host
// (orrery/storage.h).
#pragma once

#include <orrery/storage.h>

namespace data {

extern const orr_storage_api storage_table;

}  // namespace data
