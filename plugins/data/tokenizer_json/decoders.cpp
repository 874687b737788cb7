// SPDX-License-Identifier: Apache-2.0
#include "decoders.h"

#include "matcher.h"
#include "metaspace.h"

namespace data {
namespace {

using Made = std::unique_ptr<Decoder>;

class Fuse : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.assign(1, std::move(all));
  }
};

class OfMetaspace : public Decoder {
 public:
  explicit OfMetaspace(Part& part) : space_(part) { add_character(shown_, space_.character); }
  void apply(std::vector<std::string>& tokens) const override {
    bool is_first = space_.prepends != Metaspace::Prepends::never;
    for (std::string& token : tokens) {
      replace_all(token, shown_, is_first ? "" : " ");
      is_first = false;
    }
  }

 private:
  Metaspace space_;
  std::string shown_;
};

class Replace : public Decoder {
 public:
  explicit Replace(Part& part) : pattern_(pattern_of(part)), content_(part.text("content")) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string made;
      if (!token.empty())
        pattern_->spans(token, [&](const Span& span) {
          made += span.is_match ? content_ : token.substr(span.begin, span.end - span.begin);
        });
      token = std::move(made);
    }
  }

 private:
  std::unique_ptr<Matcher> pattern_;
  std::string content_;
};

// Takes away at most so many of a character at begin and end.
class Strip : public Decoder {
 public:
  explicit Strip(Part& part)
      : start_(part.integer("start", 0, INT64_MAX)), stop_(part.integer("stop", 0, INT64_MAX)) {
    add_character(content_, part.character("content"));
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (int64_t i = 0; i < start_ && token.starts_with(content_); ++i)
        token.erase(0, content_.size());
      for (int64_t i = 0; i < stop_ && token.ends_with(content_); ++i)
        token.resize(token.size() - content_.size());
    }
  }

 private:
  int64_t start_, stop_;
  std::string content_;
};

// Of a BPE whose tokens at the end of a word have a suffix.
class Suffix : public Decoder {
 public:
  explicit Suffix(Part& part) : suffix_(part.text("suffix")) {
    if (suffix_.empty()) part.refuse("'suffix' is empty");
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens)
      replace_all(token, suffix_, &token == &tokens.back() ? "" : " ");
  }

 private:
  std::string suffix_;
};

class Sequence : public Decoder {
 public:
  Sequence(Part& part, int depth) {
    for (Part& each : part.parts("decoders"))
      all_.push_back(make_decoder(std::move(each), depth + 1));
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (const Made& each : all_) each->apply(tokens);
  }

 private:
  std::vector<Made> all_;
};

Made made_of(Part& part, int depth) {
  const std::string type = part.type();
  if (type == "ByteLevel") return make_byte_level_decoder(part);
  if (type == "Metaspace") return std::make_unique<OfMetaspace>(part);
  if (type == "WordPiece") return make_word_piece_decoder(part);
  if (type == "ByteFallback") return make_byte_fallback_decoder();
  if (type == "BPEDecoder") return std::make_unique<Suffix>(part);
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return std::make_unique<Strip>(part);
  if (type == "Replace") return std::make_unique<Replace>(part);
  if (type == "Sequence") return std::make_unique<Sequence>(part, depth);
  part.refuse("a decoder '" + type + "' is not supported");
}

}  // namespace

void replace_all(std::string& text, std::string_view wanted, std::string_view by) {
  std::string made;
  size_t from = 0;
  for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, from)) {
    made.append(text, from, at - from).append(by);
    from = at + wanted.size();
  }
  text = made.append(text, from);
}

std::unique_ptr<Decoder> make_decoder(Part part, int depth) {
  return made_within(part, depth, [&](Part& whole) { return made_of(whole, depth); });
}

}  // namespace data
