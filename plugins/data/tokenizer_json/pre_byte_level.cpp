// SPDX-License-Identifier: Apache-2.0
//
// GPT-2's: the text is cut as pretokens.h says, and bytes become characters.
#include "../bpe/byte_characters.h"
#include "../bpe/pretokens.h"
#include "pre_tokenizers.h"

namespace data {
namespace {

class ByteLevel : public PreTokenizer {
 public:
  explicit ByteLevel(Part& part)
      : prefix_(part.flag("add_prefix_space")), cuts_(part.flag("use_regex", true)) {
    part.ignore("trim_offsets");
  }

  void cut(const Piece& piece, const GivePiece& give) const override {
    std::string text;
    if (prefix_ && !piece.text.starts_with(' ')) text += ' ';
    text += piece.text;
    bool is_first = piece.is_first;
    const auto give_bytes = [&](std::string_view part) {
      give({characters_of(std::string(part)), is_first});
      is_first = false;
    };
    if (!cuts_) return give_bytes(text);
    for (std::string_view part : pretokens(Split::gpt2, text, "text")) give_bytes(part);
  }

 private:
  bool prefix_, cuts_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_byte_level(Part& part) {
  return std::make_unique<ByteLevel>(part);
}

}  // namespace data
