// SPDX-License-Identifier: Apache-2.0
//
// WordPiece, BERT's way: the longest token that a word begins with, and so on with what is left of
// it, where tokens have a prefix; a word that does not come out even is unknown as a whole.
// WordLevel knows whole words.
#include <algorithm>

#include "characters.h"
#include "models.h"

namespace data {
namespace {

class WordLevel : public Model {
 public:
  explicit WordLevel(Part& part)
      : Model(Vocabulary::of(part)), where_(part.where()), unknown_(part.text("unk_token")) {}

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const int32_t id = vocabulary_.id(text);
    id >= 0 ? ids.push_back(id) : add_unknown(ids);
  }

 protected:
  void add_unknown(std::vector<int32_t>& ids) const {
    const int32_t id = vocabulary_.id(unknown_);
    if (id < 0) refuse_unknown(where_, unknown_);
    ids.push_back(id);
  }

 private:
  std::string where_, unknown_;
};

class WordPiece : public WordLevel {
 public:
  explicit WordPiece(Part& part)
      : WordLevel(part),
        prefix_(part.text("continuing_subword_prefix")),
        most_(part.integer("max_input_chars_per_word", 0, INT64_MAX)) {
    for (int64_t id = 0; id < vocabulary_.size(); ++id)
      if (const std::string* token = vocabulary_.token(id))
        longest_ = std::max(longest_, token->size());
  }

  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    const auto is_begin = [](char byte) {
      return (static_cast<unsigned char>(byte) & 0xc0) != 0x80;
    };
    const size_t before = ids.size();
    bool is_known = std::ranges::count_if(text, is_begin) <= most_;
    for (size_t begin = 0, end = 0; is_known && begin < text.size(); begin = end) {
      end = end_of_token(text, begin, ids);
      is_known = end > begin;
    }
    if (is_known) return;
    ids.resize(before);
    add_unknown(ids);
  }

 private:
  // Adds the longest token at `begin`, and returns its end; `begin` if there is none.
  size_t end_of_token(std::string_view text, size_t begin, std::vector<int32_t>& ids) const {
    std::string token = begin ? prefix_ : "";
    const size_t prefix = token.size();
    token += text.substr(begin, longest_ - std::min(longest_, prefix));
    for (size_t end = token.size(); end > prefix;) {
      token.resize(end);
      if (const int32_t id = vocabulary_.id(token); id >= 0) {
        ids.push_back(id);
        return begin + end - prefix;
      }
      while (--end > prefix && (static_cast<unsigned char>(token[end]) & 0xc0) == 0x80) {
      }
    }
    return begin;
  }

  std::string prefix_;
  int64_t most_;        // characters of a word that is looked at
  size_t longest_ = 0;  // bytes of a token
};

}  // namespace

std::unique_ptr<Model> make_word_piece(Part& part) { return std::make_unique<WordPiece>(part); }
std::unique_ptr<Model> make_word_level(Part& part) { return std::make_unique<WordLevel>(part); }

}  // namespace data
