// SPDX-License-Identifier: Apache-2.0
//
// Where encoders cut a text before they merge bytes. The regular expression of GPT-2's is
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// that of GPT-4's (cl100k_base)
//   '(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|
//   \s++$|\s*[\r\n]|\s+(?!\S)|\s
// and that of GPT-4o's (o200k_base)
//   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|...)?|
//   [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|...)?|
//   \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace data {

enum class Split { gpt2, gpt4, o200k };

// "gpt2", "gpt4" or "o200k", or as tiktoken calls them. Throws Error for another name.
Split split_by_name(const std::string& name);
// That of tiktoken's vocabulary of so many tokens, without special ones; nothing for other numbers.
std::optional<Split> split_of_tiktoken(int64_t tokens);

// Throws Error, which begins with `name`, for what is not UTF-8. [any thread]
std::vector<std::string_view> pretokens(Split split, std::string_view text,
                                        const std::string& name);

}  // namespace data
