// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece's way: a blank is a character that can be seen, and stands at the begin of a word.
// Its fields are those of the pre-tokenizer and of the decoder.
#pragma once

#include "characters.h"
#include "part.h"

namespace data {

struct Metaspace {
  enum class Prepends { always, first, never };

  explicit Metaspace(Part& part) : character(part.character("replacement")) {
    const std::string scheme = part.text("prepend_scheme", "always");
    if (scheme != "always" && scheme != "first" && scheme != "never")
      part.refuse("'prepend_scheme' is '" + scheme + "', expected always, first or never");
    if (!part.flag("add_prefix_space", true) && part.has("prepend_scheme") && scheme != "never")
      part.refuse("'add_prefix_space' is false, and 'prepend_scheme' is '" + scheme + "'");
    prepends = !part.flag("add_prefix_space", true) || scheme == "never" ? Prepends::never
               : scheme == "first"                                       ? Prepends::first
                                                                         : Prepends::always;
    splits = part.flag("split", true);
    part.ignore("str_rep");
  }

  char32_t character;
  Prepends prepends;
  bool splits;
};

}  // namespace data
