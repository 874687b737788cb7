// SPDX-License-Identifier: Apache-2.0
#include "pre_tokenizers.h"

#include "characters.h"
#include "matcher.h"

namespace data {
namespace {

using Made = std::unique_ptr<PreTokenizer>;

class Cut : public PreTokenizer {
 public:
  Cut(std::unique_ptr<Matcher> matcher, Behavior behavior, bool inverted = false)
      : matcher_(std::move(matcher)), behavior_(behavior), inverted_(inverted) {}
  void cut(const Piece& piece, const GivePiece& give) const override {
    data::cut(piece.text, *matcher_, behavior_, inverted_, [&](size_t begin, size_t end) {
      give({piece.text.substr(begin, end - begin), piece.is_first && begin == 0});
    });
  }

 private:
  std::unique_ptr<Matcher> matcher_;
  Behavior behavior_;
  bool inverted_;
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<Made> all) : all_(std::move(all)) {}
  void cut(const Piece& piece, const GivePiece& give) const override { cut_from(0, piece, give); }

 private:
  void cut_from(size_t number, const Piece& piece, const GivePiece& give) const {
    if (number == all_.size()) return give(piece);
    all_[number]->cut(piece, [&](const Piece& part) { cut_from(number + 1, part, give); });
  }

  std::vector<Made> all_;
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(Part& part)
      : length_(part.has("length") ? part.integer("length", 1, INT32_MAX) : 5) {}
  void cut(const Piece& piece, const GivePiece& give) const override {
    size_t from = 0;
    int64_t count = 0;
    const auto give_until = [&](size_t end) {
      give({piece.text.substr(from, end - from), piece.is_first && from == 0});
      from = end, count = 0;
    };
    each_character(piece.text, [&](char32_t, size_t, size_t end) {
      if (++count == length_) give_until(end);
    });
    if (from < piece.text.size()) give_until(piece.text.size());
  }

 private:
  int64_t length_;
};

Made at_white_space() {
  return std::make_unique<Cut>(characters_that(is_white_space), Behavior::removed);
}

Made at_punctuation(Behavior behavior) {
  return std::make_unique<Cut>(characters_that(is_punctuation), behavior);
}

// Words, and runs of what is neither of words nor white space.
Made words() {
  const auto kind_of = [](char32_t code) {
    return is_word(code) ? 1 : is_white_space(code) ? 0 : 2;
  };
  return std::make_unique<Cut>(runs_of(kind_of), Behavior::removed, true);
}

Made bert() {
  std::vector<Made> both;
  both.push_back(at_white_space());
  both.push_back(at_punctuation(Behavior::isolated));
  return std::make_unique<Sequence>(std::move(both));
}

Made split(Part& part) {
  auto pattern = pattern_of(part);
  const Behavior behavior = behavior_of(part);
  return std::make_unique<Cut>(std::move(pattern), behavior, part.flag("invert"));
}

Made delimiter(Part& part) {
  const char32_t wanted = part.character("delimiter");
  return std::make_unique<Cut>(characters_that([wanted](char32_t code) { return code == wanted; }),
                               Behavior::removed);
}

Made digits(Part& part) {
  return std::make_unique<Cut>(characters_that(is_numeric), part.flag("individual_digits")
                                                                ? Behavior::isolated
                                                                : Behavior::contiguous);
}

Made sequence(Part& part, int depth) {
  std::vector<Made> all;
  for (Part& each : part.parts("pretokenizers"))
    all.push_back(make_pre_tokenizer(std::move(each), depth + 1));
  return std::make_unique<Sequence>(std::move(all));
}

Made made_of(Part& part, int depth) {
  const std::string type = part.type();
  if (type == "ByteLevel") return make_byte_level(part);
  if (type == "Metaspace") return make_metaspace(part);
  if (type == "Split") return split(part);
  if (type == "Whitespace") return words();
  if (type == "WhitespaceSplit") return at_white_space();
  if (type == "Punctuation") return at_punctuation(behavior_of(part, "Isolated"));
  if (type == "Digits") return digits(part);
  if (type == "BertPreTokenizer") return bert();
  if (type == "CharDelimiterSplit" || type == "Delimiter") return delimiter(part);
  if (type == "FixedLength") return std::make_unique<FixedLength>(part);
  if (type == "Sequence") return sequence(part, depth);
  part.refuse("a pre-tokenizer '" + type + "' is not supported");
}

}  // namespace

std::unique_ptr<PreTokenizer> make_pre_tokenizer(Part part, int depth) {
  return made_within(part, depth, [&](Part& whole) { return made_of(whole, depth); });
}

}  // namespace data
