// SPDX-License-Identifier: Apache-2.0
//
// One file of a server into a file of this host. What breaks off is continued, or begun anew where
// the server's file is another by then; faults that pass are tried again.
#pragma once

#include "local_file.h"
#include "transfer.h"

namespace data {

// `wanted` is asked each time when all of the file comes, and `came` is told its bytes, in order.
// The outcome is complete, or says what is wrong. Throws Error where the file cannot be written,
// and where the server does not say enough.
Outcome download(const std::string& address, const Access& access, const LocalFile& to,
                 const Begin& wanted, const Take& came);

}  // namespace data
