// SPDX-License-Identifier: Apache-2.0
//
// A text that is changed one character after the other.
#pragma once

#include "characters.h"
#include "normalizers.h"

namespace data {

// `change(code, to)` adds what becomes of a character; nothing if it is left out.
template <class Change>
void change_characters(Normal& normal, Change&& change) {
  std::string made;
  made.reserve(normal.text.size());
  each_character(normal.text, [&](char32_t code, size_t, size_t) {
    const bool is_begin = made.empty();
    change(code, made);
    if (is_begin && made.empty()) normal.is_first = false;
  });
  normal.text = std::move(made);
}

}  // namespace data
