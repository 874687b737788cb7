// SPDX-License-Identifier: Apache-2.0
//
// In vocab.json and merges.txt a byte is a character that can be seen: itself where it is one, else
// one of U+0100 and above, in the order of the bytes.
#pragma once

#include <string>

namespace data {

// A token's bytes. One that has other characters than those of bytes, such as one added by hand, is
// kept as it is. [any thread]
std::string bytes_of(const std::string& token);
// The characters that stand for bytes, in UTF-8. [any thread]
std::string characters_of(const std::string& bytes);
// false: bytes_of returns it as it is. [any thread]
bool stands_for_bytes(const std::string& token);
// The code point that stands for a byte. [any thread]
char32_t character_of(unsigned char byte);

}  // namespace data
