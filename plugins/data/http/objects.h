// SPDX-License-Identifier: Apache-2.0
//
// Files in buckets of S3 and of its likes: written, listed and removed by their addresses,
// s3://BUCKET/KEY. All functions throw Error, which names the address.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace data {

// Makes a local file that of an address, and returns its version; nothing where the condition does
// not hold: with `version` the file must be in that state, with "" there must be none. Long files
// are sent in parts, and are there once all have come.
std::optional<std::string> put_object(const std::string& address, const std::string& path,
                                      const char* version);
// Gives all addresses that begin so, in their order.
void list_objects(const std::string& prefix, const std::function<void(const std::string&)>& give);
void remove_object(const std::string& address);

}  // namespace data
