// SPDX-License-Identifier: Apache-2.0
//
// Small text helpers that messages share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// The element of `known` with the smallest edit distance to `name`, or "" if in all of them more
// than a third of the letters differ.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

// " (did you mean 'x'?)" or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

std::string join(const std::vector<std::string>& parts, std::string_view separator);

// 1536 -> "1.5 KiB".
std::string human_bytes(double bytes);

}  // namespace orrery
