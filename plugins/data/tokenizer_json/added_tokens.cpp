// SPDX-License-Identifier: Apache-2.0
#include "added_tokens.h"

#include "../bpe/bpe.h"
#include "characters.h"

namespace data {
namespace {

std::string normal_of(const std::string& text, const Normalizer* normalizer) {
  Normal normal{text, true};
  if (normalizer) normalizer->apply(normal);
  return normal.text;
}

int32_t id_of(Part& part, const std::string& text, const Vocabulary& vocabulary) {
  const auto id = static_cast<int32_t>(part.integer("id", 0, int64_t{kMostIds} - 1));
  const int32_t known = vocabulary.id(text);
  if (known >= 0 && known != id)
    part.refuse("'" + text + "' has the id " + std::to_string(id) + ", in the vocabulary it has " +
                std::to_string(known));
  const std::string* other = known < 0 ? vocabulary.token(id) : nullptr;
  if (other)
    part.refuse("'" + text + "' has the id " + std::to_string(id) + ", which is that of '" +
                *other + "'");
  return id;
}

bool is_word_before(std::string_view text, size_t end) {
  size_t begin = 0;
  return end > 0 && is_word(character_before(text, end, begin));
}

bool is_word_at(std::string_view text, size_t begin) {
  return begin < text.size() && is_word(orr::code_point(text, begin).code);
}

size_t begin_of_blanks(std::string_view text, size_t end) {
  size_t begin = 0;
  while (end > 0 && is_white_space(character_before(text, end, begin))) end = begin;
  return end;
}

size_t end_of_blanks(std::string_view text, size_t begin) {
  while (begin < text.size()) {
    const orr::CodePoint first = orr::code_point(text, begin);
    if (!is_white_space(first.code)) break;
    begin += first.bytes;
  }
  return begin;
}

}  // namespace

AddedTokens::AddedTokens(Part& file, const Vocabulary& vocabulary, const Normalizer* normalizer)
    : normalizer_(normalizer) {
  std::set<std::string> raw, normal;
  if (!file.has("added_tokens")) return;
  for (Part& part : file.parts("added_tokens")) {
    const std::string content = part.text("content");
    if (content.empty()) part.refuse("'content' is empty");
    const int32_t id = id_of(part, content, vocabulary);
    const bool is_normal = part.flag("normalized", true);
    if (part.flag("special", false)) special_.insert(content);
    const Token token{is_normal ? normal_of(content, normalizer) : content,
                      part.flag("single_word", false), part.flag("lstrip", false),
                      part.flag("rstrip", false)};
    part.finish();
    if (!(is_normal ? normal : raw).insert(token.text).second)
      part.refuse("'" + content + "' is another token as well, or becomes the same text");
    if (!tokens_.try_emplace(id, token).second)
      part.refuse("'" + content + "' has the id " + std::to_string(id) + ", as another one has");
    if (!token.text.empty()) (is_normal ? normal_ : raw_).add(token.text, id);
  }
}

const std::string* AddedTokens::text(int64_t id) const {
  const auto found = id < INT32_MAX ? tokens_.find(static_cast<int32_t>(id)) : tokens_.end();
  return found == tokens_.end() ? nullptr : &found->second.text;
}

void AddedTokens::cut(const Trie& wanted, std::string_view text, const GivePart& give) const {
  size_t behind = 0;  // the last token
  for (size_t from = 0; from < text.size();) {
    const auto [at, end, id] = wanted.next(text, from);
    from = end;
    if (id < 0) break;
    const Token& token = tokens_.at(id);
    if (token.single_word && (is_word_before(text, at) || is_word_at(text, end))) continue;
    const size_t begin = token.lstrip ? std::max(begin_of_blanks(text, at), behind) : at;
    if (behind < begin) give(-1, text.substr(behind, begin - behind), behind);
    give(id, {}, begin);
    behind = token.rstrip ? end_of_blanks(text, end) : end;
  }
  if (behind < text.size()) give(-1, text.substr(behind), behind);
}

void AddedTokens::each_part(std::string_view text, const std::function<void(int32_t)>& token,
                            const std::function<void(const Normal&)>& piece) const {
  const auto give_normal = [&](const Normal& normal) {
    cut(normal_, normal.text, [&](int32_t id, std::string_view part, size_t begin) {
      id < 0 ? piece({std::string(part), normal.is_first && begin == 0}) : token(id);
    });
  };
  cut(raw_, text, [&](int32_t id, std::string_view part, size_t begin) {
    if (id >= 0) return token(id);
    Normal normal{std::string(part), begin == 0};
    if (normalizer_) normalizer_->apply(normal);
    if (!normal.text.empty()) give_normal(normal);
  });
}

}  // namespace data
