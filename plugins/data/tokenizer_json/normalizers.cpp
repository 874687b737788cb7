// SPDX-License-Identifier: Apache-2.0
#include "normalizers.h"

#include "../bpe/byte_characters.h"
#include "changes.h"
#include "characters.h"
#include "matcher.h"

namespace data {
namespace {

using Made = std::unique_ptr<Normalizer>;

// One that needs to know nothing but what it does.
class Plain : public Normalizer {
 public:
  explicit Plain(void (*apply)(Normal&)) : apply_(apply) {}
  void apply(Normal& normal) const override { apply_(normal); }

 private:
  void (*apply_)(Normal&);
};

template <Form form>
void to_form(Normal& normal) {
  normal.text = in_form(form, normal.text);
}

void lowercase(Normal& normal) {
  change_characters(normal, [](char32_t code, std::string& to) { add_lower(to, code); });
}

void strip_accents(Normal& normal) {
  change_characters(normal, [](char32_t code, std::string& to) {
    if (!is_mark(code)) add_character(to, code);
  });
}

void to_byte_characters(Normal& normal) { normal.text = characters_of(normal.text); }

// What the trainer of NMT models leaves out, and takes for a blank.
void nmt(Normal& normal) {
  change_characters(normal, [](char32_t code, std::string& to) {
    const bool is_gone = (code >= 0x01 && code <= 0x08) || code == 0x0b ||
                         (code >= 0x0e && code <= 0x1f) || code == 0x7f || code == 0x8f ||
                         code == 0x9f;
    const bool is_blank = code == 0x09 || code == 0x0a || code == 0x0c || code == 0x0d ||
                          code == 0x1680 || (code >= 0x200b && code <= 0x200f) || code == 0x2028 ||
                          code == 0x2029 || code == 0x2581 || code == 0xfeff || code == 0xfffd;
    if (!is_gone) add_character(to, is_blank ? U' ' : code);
  });
}

class Strip : public Normalizer {
 public:
  explicit Strip(Part& part) : left_(part.flag("strip_left")), right_(part.flag("strip_right")) {}
  void apply(Normal& normal) const override {
    std::string& text = normal.text;
    size_t begin = 0;
    while (right_ && !text.empty() && is_white_space(character_before(text, text.size(), begin)))
      text.resize(begin);
    size_t end = 0;
    while (left_ && end < text.size()) {
      const orr::CodePoint first = orr::code_point(text, end);
      if (!is_white_space(first.code)) break;
      end += first.bytes;
    }
    text.erase(0, end);
    if (end) normal.is_first = false;
  }

 private:
  bool left_, right_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(Part& part) : text_(part.text("prepend")) {}
  void apply(Normal& normal) const override { normal.text.insert(0, text_); }

 private:
  std::string text_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(Part& part) : pattern_(pattern_of(part)), content_(part.text("content")) {}
  void apply(Normal& normal) const override {
    std::string made;
    const std::string& text = normal.text;
    pattern_->spans(text, [&](const Span& span) {
      made += span.is_match ? content_ : text.substr(span.begin, span.end - span.begin);
      if (span.is_match && span.begin == 0 && span.end > 0)
        normal.is_first &= !content_.empty() && span.end == orr::code_point(text, 0).bytes;
    });
    normal.text = std::move(made);
  }

 private:
  std::unique_ptr<Matcher> pattern_;
  std::string content_;
};

class Sequence : public Normalizer {
 public:
  Sequence(Part& part, int depth) {
    for (Part& each : part.parts("normalizers"))
      all_.push_back(make_normalizer(std::move(each), depth + 1));
  }
  void apply(Normal& normal) const override {
    for (const Made& each : all_)
      if (!normal.text.empty()) each->apply(normal);
  }

 private:
  std::vector<Made> all_;
};

Made plain_of(const std::string& type) {
  const auto plain = [](void (*apply)(Normal&)) { return std::make_unique<Plain>(apply); };
  if (type == "NFC") return plain(to_form<Form::nfc>);
  if (type == "NFD") return plain(to_form<Form::nfd>);
  if (type == "NFKC") return plain(to_form<Form::nfkc>);
  if (type == "NFKD") return plain(to_form<Form::nfkd>);
  if (type == "Lowercase") return plain(lowercase);
  if (type == "StripAccents") return plain(strip_accents);
  if (type == "ByteLevel") return plain(to_byte_characters);
  if (type == "Nmt") return plain(nmt);
  return nullptr;
}

Made made_of(Part& part, int depth) {
  const std::string type = part.type();
  if (type == "BertNormalizer") return make_bert_normalizer(part);
  if (type == "Strip") return std::make_unique<Strip>(part);
  if (type == "Prepend") return std::make_unique<Prepend>(part);
  if (type == "Replace") return std::make_unique<Replace>(part);
  if (type == "Precompiled") return make_precompiled(part);
  if (type == "Sequence") return std::make_unique<Sequence>(part, depth);
  if (Made plain = plain_of(type)) return plain;
  part.refuse("a normalizer '" + type + "' is not supported");
}

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(Part part, int depth) {
  return made_within(part, depth, [&](Part& whole) { return made_of(whole, depth); });
}

}  // namespace data
