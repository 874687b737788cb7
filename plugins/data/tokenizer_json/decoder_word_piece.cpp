// SPDX-License-Identifier: Apache-2.0
//
// A blank before every token that does not go on with a word; "cleanup" takes blanks away before
// punctuation and contractions.
#include "decoders.h"

namespace data {
namespace {

void clean_up(std::string& text) {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [wanted, by] : kPairs) replace_all(text, wanted, by);
}

class WordPiece : public Decoder {
 public:
  explicit WordPiece(Part& part) : prefix_(part.text("prefix")), cleans_(part.flag("cleanup")) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      if (&token != &tokens.front()) {
        if (token.starts_with(prefix_)) {
          token.erase(0, prefix_.size());
        } else {
          token.insert(token.begin(), ' ');
        }
      }
      if (cleans_) clean_up(token);
    }
  }

 private:
  std::string prefix_;
  bool cleans_;
};

}  // namespace

std::unique_ptr<Decoder> make_word_piece_decoder(Part& part) {
  return std::make_unique<WordPiece>(part);
}

}  // namespace data
