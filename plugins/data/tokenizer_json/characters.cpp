// SPDX-License-Identifier: Apache-2.0
#include "characters.h"

#include <utf8proc.h>

#include <cstdlib>
#include <new>

#include "../refuse.h"

namespace data {
namespace {

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Symbols that have the property Alphabetic: the circled and squared ones.
bool is_alphabetic_symbol(char32_t code) {
  return (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
         (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
}

}  // namespace

bool is_white_space(char32_t code) {
  return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
         code == 0x202f || code == 0x205f || code == 0x3000;
}

bool is_punctuation(char32_t code) {
  if (code < 0x80)
    return (code > 0x20 && code < '0') || (code > '9' && code < 'A') ||
           (code > 'Z' && code < 'a') || (code > 'z' && code < 0x7f);
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_numeric(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; }

bool is_other(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_CO;
}

bool is_word(char32_t code) {
  const utf8proc_category_t kind = category(code);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_NL) ||
         kind == UTF8PROC_CATEGORY_PC || code == 0x200c || code == 0x200d ||
         is_alphabetic_symbol(code);
}

std::string in_form(Form form, std::string_view text) {
  const bool composes = form == Form::nfc || form == Form::nfkc;
  const bool is_compatible = form == Form::nfkc || form == Form::nfkd;
  const int options = UTF8PROC_STABLE | (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                      (is_compatible ? UTF8PROC_COMPAT : 0);
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t bytes = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &made, static_cast<utf8proc_option_t>(options));
  if (bytes == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (bytes < 0) fail(ORR_FAILED, "utf8proc: ", utf8proc_errmsg(bytes));
  std::string result(reinterpret_cast<const char*>(made), static_cast<size_t>(bytes));
  std::free(made);
  return result;
}

void add_character(std::string& text, char32_t code) {
  utf8proc_uint8_t bytes[4];
  const utf8proc_ssize_t count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

void add_lower(std::string& text, char32_t code) {
  if (code == 0x130) {  // the one capital of which Unicode makes two characters, whatever the place
    text += "i\u0307";
  } else {
    add_character(text,
                  static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

char32_t character_before(std::string_view text, size_t end, size_t& begin) {
  begin = end - 1;
  while ((static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) --begin;
  return orr::code_point(text, begin).code;
}

}  // namespace data
