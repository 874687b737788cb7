// SPDX-License-Identifier: Apache-2.0
//
// Addresses: what messages and files are called after them.
#pragma once

#include <string>

namespace data {

// Without what may be secret: a password, and what is behind the "?".
std::string shown(const std::string& url);

struct AddressNames {
  std::string host, file;  // of letters, digits, points, dashes and underscores
};
// Of a request. Throws Error for what is no address of http:// or https://.
AddressNames names_of(const std::string& url);

}  // namespace data
