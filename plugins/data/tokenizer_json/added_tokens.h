// SPDX-License-Identifier: Apache-2.0
//
// Tokens that are found in a text before the model sees it, whatever stands around them: the field
// "added_tokens". "normalized" ones are found after the normalizer, as it has made them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>

#include "../trie.h"
#include "normalizers.h"
#include "vocabulary.h"

namespace data {

class AddedTokens {
 public:
  // Throws Error for ids that are not those of `vocabulary`, or that it has for other tokens.
  AddedTokens(Part& file, const Vocabulary& vocabulary, const Normalizer* normalizer);

  // `token(id)` for each of them in a text, `piece(text, is_first)` for what lies between: normal,
  // and never empty. [any thread]
  void each_part(std::string_view text, const std::function<void(int32_t)>& token,
                 const std::function<void(const Normal&)>& piece) const;

  // The text that an id is decoded to; null for an id that is none of theirs.
  const std::string* text(int64_t id) const;
  bool is_special(const std::string& text) const { return special_.contains(text); }
  int64_t largest() const { return tokens_.empty() ? -1 : tokens_.rbegin()->first; }

 private:
  struct Token {
    std::string text;  // that is looked for
    bool single_word, lstrip, rstrip;
  };
  using GivePart = std::function<void(int32_t id, std::string_view text, size_t begin)>;
  void cut(const Trie& wanted, std::string_view text, const GivePart& give) const;

  std::map<int32_t, Token> tokens_;
  std::set<std::string> special_;
  Trie raw_, normal_;
  const Normalizer* normalizer_;
};

}  // namespace data
