// SPDX-License-Identifier: Apache-2.0
#include "matcher.h"
#include "metaspace.h"
#include "pre_tokenizers.h"

namespace data {
namespace {

class PreMetaspace : public PreTokenizer {
 public:
  explicit PreMetaspace(Part& part) : space_(part) {
    add_character(shown_, space_.character);
    matcher_ =
        characters_that([wanted = space_.character](char32_t code) { return code == wanted; });
  }

  void cut(const Piece& piece, const GivePiece& give) const override {
    std::string text;
    for (char byte : piece.text) byte == ' ' ? text += shown_ : text += byte;
    const bool prepends = space_.prepends == Metaspace::Prepends::always ||
                          (space_.prepends == Metaspace::Prepends::first && piece.is_first);
    if (prepends && !text.starts_with(shown_)) text.insert(0, shown_);
    if (!space_.splits) return give({text, piece.is_first});
    data::cut(text, *matcher_, Behavior::merged_with_next, false, [&](size_t begin, size_t end) {
      give({std::string_view(text).substr(begin, end - begin), piece.is_first && begin == 0});
    });
  }

 private:
  Metaspace space_;
  std::string shown_;
  std::unique_ptr<Matcher> matcher_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_metaspace(Part& part) {
  return std::make_unique<PreMetaspace>(part);
}

}  // namespace data
