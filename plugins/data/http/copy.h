// SPDX-License-Identifier: Apache-2.0
//
// Copies of files of servers, kept below ~/.cache/orrery/http (XDG_CACHE_HOME names another folder
// than ~/.cache).
#pragma once

#include <string>

namespace data {

// The path of the copy of what is at the address now: one that there is, if the server still says
// the same ETag (or date of change) and size, else a new one. A copy is never changed. What is cut
// off is continued, faults that pass are tried again. Throws Error, which names the address.
// Several processes may call it at once: one of them copies.
std::string copy_of(const std::string& url);

}  // namespace data
