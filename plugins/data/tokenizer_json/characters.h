// SPDX-License-Identifier: Apache-2.0
//
// Properties of characters, and normal forms of texts (Unicode Standard Annex 15), by utf8proc.
#pragma once

#include <string>
#include <string_view>

#include <orrery/sdk/utf8.hpp>

namespace data {

// [any thread] each.
bool is_white_space(char32_t code);
bool is_punctuation(char32_t code);  // of Unicode, or a symbol of ASCII
bool is_numeric(char32_t code);
bool is_mark(char32_t code);
bool is_nonspacing_mark(char32_t code);
bool is_other(char32_t code);  // controls, formats, private use; not what is not assigned
bool is_word(char32_t code);   // \w of Unicode Technical Standard 18

enum class Form { nfc, nfd, nfkc, nfkd };
// REQUIRES: the text is UTF-8.
std::string in_form(Form form, std::string_view text);

// Appends the lowercase form of a character to a text.
void add_lower(std::string& text, char32_t code);
void add_character(std::string& text, char32_t code);

// `seen(code, begin, end)` for each character. REQUIRES: the text is UTF-8.
template <class Seen>
void each_character(std::string_view text, Seen&& seen) {
  for (size_t at = 0; at < text.size();) {
    const orr::CodePoint character = orr::code_point(text, at);
    seen(character.code, at, at + character.bytes);
    at += character.bytes;
  }
}

// The character before `end`, and where it begins. REQUIRES: 0 < end, the text is UTF-8.
char32_t character_before(std::string_view text, size_t end, size_t& begin);

}  // namespace data
