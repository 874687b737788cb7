// SPDX-License-Identifier: Apache-2.0
#include "data/gpt2_split.h"

#include <algorithm>
#include <span>

#include "base/error.h"
#include "data/utf8.h"

namespace orrery {
namespace {

struct Range {
  char32_t first, last;
};
#include "data/unicode_classes.inc"

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

class Splitter {
 public:
  Splitter(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // The end of the pretoken that begins at `begin`.
  size_t end_of_pretoken(size_t begin) const {
    for (const char* ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text_.substr(begin).starts_with(ending)) return begin + std::string_view(ending).size();
    const size_t start = text_[begin] == ' ' ? begin + 1 : begin;
    if (start < text_.size() && kind_at(start) != Kind::blank) return end_of_run(start);
    return end_of_blanks(begin);
  }

 private:
  CodePoint at(size_t place) const {
    const CodePoint found = code_point(text_, place);
    if (!found.bytes) fail(ORR_INVALID, "{}: byte {} is not UTF-8", name_, place);
    return found;
  }
  Kind kind_at(size_t place) const { return kind_of(at(place).code); }

  // Behind all of one kind from `place` on.
  size_t end_of_run(size_t place) const {
    const Kind kind = kind_at(place);
    while (place < text_.size() && kind_at(place) == kind) place += at(place).bytes;
    return place;
  }

  // Of blanks before something else the last one belongs to that, unless it is the only one.
  size_t end_of_blanks(size_t begin) const {
    const size_t end = end_of_run(begin);
    if (end == text_.size()) return end;
    size_t last = begin;
    while (last + at(last).bytes < end) last += at(last).bytes;
    return last == begin ? end : last;
  }

  std::string_view text_;
  const std::string& name_;
};

}  // namespace

std::vector<std::string_view> gpt2_split(std::string_view text, const std::string& name) {
  const Splitter splitter(text, name);
  std::vector<std::string_view> pretokens;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = splitter.end_of_pretoken(begin);
    pretokens.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pretokens;
}

}  // namespace orrery
