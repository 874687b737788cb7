// SPDX-License-Identifier: Apache-2.0
//
// Where GPT-2 cuts a text before it merges bytes: the regular expression of its encoder,
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Throws Error, which begins with `name`, for what is not UTF-8. [any thread]
std::vector<std::string_view> gpt2_split(std::string_view text, const std::string& name);

}  // namespace orrery
