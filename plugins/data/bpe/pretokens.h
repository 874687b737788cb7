// SPDX-License-Identifier: Apache-2.0
//
// Where encoders cut a text before they merge bytes. The regular expression of GPT-2's is
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// and that of GPT-4's (cl100k_base)
//   '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|
//   \s++$|\s*[\r\n]|\s+(?!\S)|\s
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace data {

enum class Split { gpt2, gpt4 };

// "gpt2" or "gpt4". Throws Error for another name.
Split split_by_name(const std::string& name);

// Throws Error, which begins with `name`, for what is not UTF-8. [any thread]
std::vector<std::string_view> pretokens(Split split, std::string_view text,
                                        const std::string& name);

}  // namespace data
