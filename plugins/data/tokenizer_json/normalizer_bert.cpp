// SPDX-License-Identifier: Apache-2.0
//
// BERT's: controls are left out, blanks become spaces, Chinese characters stand alone, accents and
// capitals go.
#include "changes.h"

namespace data {
namespace {

// The blocks that BERT's tokenizer takes for Chinese.
bool is_chinese(char32_t code) {
  return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
         (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
         (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
         (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

void clean(Normal& normal) {
  change_characters(normal, [](char32_t code, std::string& to) {
    const bool is_blank = code == '\t' || code == '\n' || code == '\r';
    if (code == 0 || code == 0xfffd || (is_other(code) && !is_blank)) return;
    add_character(to, is_white_space(code) ? U' ' : code);
  });
}

void set_apart_chinese(Normal& normal) {
  change_characters(normal, [](char32_t code, std::string& to) {
    if (is_chinese(code)) to += ' ';
    add_character(to, code);
    if (is_chinese(code)) to += ' ';
  });
}

void strip_accents(Normal& normal) {
  normal.text = in_form(Form::nfd, normal.text);
  change_characters(normal, [](char32_t code, std::string& to) {
    if (!is_nonspacing_mark(code)) add_character(to, code);
  });
}

class BertNormalizer : public Normalizer {
 public:
  explicit BertNormalizer(Part& part)
      : cleans_(part.flag("clean_text")),
        chinese_(part.flag("handle_chinese_chars")),
        lowercase_(part.flag("lowercase")),
        accents_(part.flag("strip_accents", lowercase_)) {}

  void apply(Normal& normal) const override {
    if (cleans_) clean(normal);
    if (chinese_) set_apart_chinese(normal);
    if (accents_) strip_accents(normal);
    if (lowercase_)
      change_characters(normal, [](char32_t code, std::string& to) { add_lower(to, code); });
  }

 private:
  bool cleans_, chinese_, lowercase_, accents_;
};

}  // namespace

std::unique_ptr<Normalizer> make_bert_normalizer(Part& part) {
  return std::make_unique<BertNormalizer>(part);
}

}  // namespace data
