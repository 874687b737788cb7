// SPDX-License-Identifier: Apache-2.0
#include "pretokens.h"

#include <algorithm>
#include <span>

#include <orrery/sdk/utf8.hpp>
#include "../refuse.h"

namespace data {
namespace {

struct Range {
  char32_t first, last;
};
#include "unicode_cases.inc"
#include "unicode_classes.inc"

enum class Kind { letter, number, blank, other };

bool within(std::span<const Range> ranges, char32_t code) {
  const auto behind =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](char32_t c, const Range& range) { return c < range.first; });
  return behind != ranges.begin() && code <= std::prev(behind)->last;
}

Kind kind_of(char32_t code) {
  if (within(kLetters, code)) return Kind::letter;
  if (within(kNumbers, code)) return Kind::number;
  return within(kBlanks, code) ? Kind::blank : Kind::other;
}

// The kinds of a text's characters, by the byte at which they begin.
class Characters {
 public:
  Characters(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  size_t size() const { return text_.size(); }
  std::string_view from(size_t place) const { return text_.substr(place); }
  orr::CodePoint at(size_t place) const {
    const orr::CodePoint found = orr::code_point(text_, place);
    if (!found.bytes) refuse(name_, ": byte ", place, " is not UTF-8");
    return found;
  }
  // REQUIRES: place < size().
  Kind kind(size_t place) const { return kind_of(at(place).code); }
  bool is(Kind wanted, size_t place) const { return place < size() && kind(place) == wanted; }
  bool is_line_end(size_t place) const {
    return place < size() && (text_[place] == '\n' || text_[place] == '\r');
  }

  // Letters without case, and marks, are both.
  bool is_capital(size_t place) const { return is_in_word(place, kSmall); }
  bool is_small(size_t place) const { return is_in_word(place, kCapitals); }

  // Behind at most `most` characters, all of the kind of the first.
  size_t end_of_run(size_t place, size_t most = SIZE_MAX) const {
    const Kind wanted = kind(place);
    for (size_t count = 0; count < most && is(wanted, place); ++count) place += at(place).bytes;
    return place;
  }

  // Of blanks before something else the last one belongs to that, unless it is the only one.
  size_t end_of_blanks(size_t begin) const {
    const size_t end = end_of_run(begin);
    if (end == size()) return end;
    size_t last = begin;
    while (last + at(last).bytes < end) last += at(last).bytes;
    return last == begin ? end : last;
  }

 private:
  bool is_in_word(size_t place, std::span<const Range> but_not) const {
    if (place >= size()) return false;
    const char32_t code = at(place).code;
    return (within(kLetters, code) || within(kMarks, code)) && !within(but_not, code);
  }

  std::string_view text_;
  const std::string& name_;
};

size_t end_of_gpt2(const Characters& text, size_t begin) {
  for (std::string_view ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (text.from(begin).starts_with(ending)) return begin + ending.size();
  const size_t start = text.from(begin)[0] == ' ' ? begin + 1 : begin;
  if (start < text.size() && text.kind(start) != Kind::blank) return text.end_of_run(start);
  return text.end_of_blanks(begin);
}

// Behind 's and its like, in capitals too; 0: none begins here.
size_t end_of_contraction(const Characters& text, size_t begin) {
  const std::string_view rest = text.from(begin);
  constexpr std::string_view kLongS = "\u017f";  // a small s, to those who ignore the case
  if (rest[0] != '\'') return 0;
  if (rest.substr(1).starts_with(kLongS)) return begin + 1 + kLongS.size();
  for (std::string_view ending : {"s", "d", "m", "t", "ll", "ve", "re"}) {
    bool same = rest.size() > ending.size();
    for (size_t i = 0; same && i < ending.size(); ++i)
      same = (static_cast<unsigned char>(rest[1 + i]) | 0x20) == ending[i];
    if (same) return begin + 1 + ending.size();
  }
  return 0;
}

// Returns the end of the last line break in a run of blanks, if there is one.
size_t end_of_lines(const Characters& text, size_t begin) {
  for (size_t last = text.end_of_run(begin); last > begin; --last)
    if (text.is_line_end(last - 1)) return last;
  return text.end_of_blanks(begin);
}

size_t end_of_blanks_gpt4(const Characters& text, size_t begin) {
  const size_t end = text.end_of_run(begin);
  return end == text.size() ? end : end_of_lines(text, begin);
}

size_t end_of_gpt4(const Characters& text, size_t begin) {
  if (const size_t end = end_of_contraction(text, begin)) return end;
  const Kind kind = text.kind(begin);
  const size_t next = begin + text.at(begin).bytes;
  if (kind == Kind::letter) return text.end_of_run(begin);
  if (kind == Kind::number) return text.end_of_run(begin, 3);
  if (!text.is_line_end(begin) && text.is(Kind::letter, next)) return text.end_of_run(next);
  const bool leads = text.from(begin)[0] == ' ' && text.is(Kind::other, next);
  if (kind == Kind::blank && !leads) return end_of_blanks_gpt4(text, begin);
  size_t end = text.end_of_run(leads ? next : begin);
  while (text.is_line_end(end)) ++end;
  return end;
}

// Returns the end of a word of capital letters, or none, and at least one small letter after them;
// 0 if no such word begins here. A letter without case counts as a capital as long as one is left
// for the end.
size_t end_of_small_o200k(const Characters& text, size_t begin) {
  size_t end = begin, behind_small = 0;
  while (text.is_capital(end)) {
    const bool is_both = text.is_small(end);
    end += text.at(end).bytes;
    if (is_both) behind_small = end;
  }
  if (!text.is_small(end)) return behind_small;
  while (text.is_small(end)) end += text.at(end).bytes;
  return end;
}

// Returns the end of a run of capital letters; 0 if there is none.
size_t end_of_capitals(const Characters& text, size_t begin) {
  size_t end = begin;
  while (text.is_capital(end)) end += text.at(end).bytes;
  return end == begin ? 0 : end;
}

// A word may begin with one character that is none of a word; a mark may be taken for that.
size_t end_of_word_o200k(const Characters& text, size_t begin) {
  const Kind kind = text.kind(begin);
  const bool may_lead = kind != Kind::letter && kind != Kind::number && !text.is_line_end(begin);
  const size_t next = begin + text.at(begin).bytes;
  for (const auto& end_of : {end_of_small_o200k, end_of_capitals}) {
    size_t end = may_lead ? end_of(text, next) : 0;
    if (!end) end = end_of(text, begin);
    if (!end) continue;
    const size_t contraction = end < text.size() ? end_of_contraction(text, end) : 0;
    return contraction ? contraction : end;
  }
  return 0;
}

size_t end_of_o200k(const Characters& text, size_t begin) {
  if (const size_t end = end_of_word_o200k(text, begin)) return end;
  const Kind kind = text.kind(begin);
  if (kind == Kind::number) return text.end_of_run(begin, 3);
  const bool leads = text.from(begin)[0] == ' ' && text.is(Kind::other, begin + 1);
  if (kind == Kind::blank && !leads) return end_of_lines(text, begin);
  size_t end = text.end_of_run(leads ? begin + 1 : begin);
  while (text.is_line_end(end) || text.from(end).starts_with('/')) ++end;
  return end;
}

size_t end_of(Split split, const Characters& text, size_t begin) {
  switch (split) {
    case Split::gpt2: return end_of_gpt2(text, begin);
    case Split::gpt4: return end_of_gpt4(text, begin);
    case Split::o200k: return end_of_o200k(text, begin);
  }
  return text.size();
}

}  // namespace

Split split_by_name(const std::string& name) {
  if (name == "gpt2" || name == "r50k" || name == "p50k") return Split::gpt2;
  if (name == "gpt4" || name == "cl100k") return Split::gpt4;
  if (name == "o200k") return Split::o200k;
  refuse("split is '", name, "': a text is cut as gpt2 (r50k, p50k), gpt4 (cl100k) or o200k does");
}

std::optional<Split> split_of_tiktoken(int64_t tokens) {
  switch (tokens) {
    case 50256:  // r50k_base
    case 50280:  // p50k_base
      return Split::gpt2;
    case 100256: return Split::gpt4;   // cl100k_base
    case 199998: return Split::o200k;  // o200k_base
  }
  return std::nullopt;
}

std::vector<std::string_view> pretokens(Split split, std::string_view text,
                                        const std::string& name) {
  const Characters characters(text, name);
  std::vector<std::string_view> all;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = end_of(split, characters, begin);
    all.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return all;
}

}  // namespace data
