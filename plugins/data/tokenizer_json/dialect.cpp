// SPDX-License-Identifier: Apache-2.0
//
// Oniguruma's expressions in PCRE2's language. Of what means something else there: \s, \w and \h
// have other characters, a class may hold classes and &&, {2,3}+ repeats what is repeated, and
// options (?m) and (?s) mean others.
#include <algorithm>
#include <cctype>

#include "../refuse.h"
#include "regex.h"

namespace data {
namespace {

constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

class Translation {
 public:
  Translation(const std::string& from, const std::string& where) : from_(from), where_(where) {}

  std::string made() {
    while (at_ < from_.size()) {
      const char c = from_[at_];
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        bracket();
      } else if (c == '{') {
        repeat();
      } else {
        if (rest().starts_with("(?")) check_group();
        take(1);
      }
    }
    return to_;
  }

 private:
  std::string_view rest() const { return std::string_view(from_).substr(at_); }
  void take(size_t count) { to_ += rest().substr(0, count), at_ += count; }
  [[noreturn]] void unsupported(const std::string& what) const {
    refuse(where_, ": the regular expression '", from_, "': ", what, " is not supported");
  }

  void escape(bool in_class) {
    if (at_ + 1 >= from_.size()) return take(1);
    const char letter = from_[at_ + 1];
    const std::string word(kWord);
    switch (letter) {
      case 's': to_ += R"(\p{White_Space})"; break;
      case 'S': to_ += R"(\P{White_Space})"; break;
      case 'w': to_ += in_class ? word : "[" + word + "]"; break;
      case 'W':
        if (in_class) unsupported("\\W in a class");
        to_ += "[^" + word + "]";
        break;
      case 'h': to_ += in_class ? "0-9a-fA-F" : "[0-9a-fA-F]"; break;
      default:
        // Characters themselves, their codes, digits, properties, begin and end.
        if (std::string_view("dDntrfvaepPxAzZ").find(letter) == std::string_view::npos &&
            (static_cast<unsigned char>(letter) >= 0x80 || std::isalnum(letter)))
          unsupported(std::string("\\") + letter);
        take(2);
        if ((letter == 'p' || letter == 'P' || letter == 'x') && rest().starts_with('{'))
          take(std::min(rest().find('}'), rest().size() - 1) + 1);
        return;
    }
    at_ += 2;
  }

  void bracket() {
    take(1);
    if (rest().starts_with('^')) take(1);
    if (rest().starts_with(']')) unsupported("a class that begins with ]");
    while (at_ < from_.size() && from_[at_] != ']') {
      if (from_[at_] == '[') unsupported("a class in a class");
      if (rest().starts_with("&&")) unsupported("&& in a class");
      if (from_[at_] == '\\') {
        escape(true);
      } else {
        take(1);
      }
    }
    if (at_ < from_.size()) take(1);
  }

  void repeat() {
    const size_t end = from_.find('}', at_);
    if (end == std::string::npos) unsupported("{ alone");
    const std::string inside = from_.substr(at_ + 1, end - at_ - 1);
    if (inside.empty() || inside[0] == ',' ||
        inside.find_first_not_of("0123456789,") != std::string::npos)
      unsupported("{" + inside + "}");
    take(inside.size() + 2);
    if (at_ >= from_.size()) return;
    if (from_[at_] == '+' || from_[at_] == '*') unsupported("{" + inside + "}" + from_[at_]);
    if (from_[at_] == '?' && inside.find(',') == std::string::npos)
      unsupported("{" + inside + "}?");
  }

  void check_group() const {
    for (std::string_view known :
         {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?i)", "(?-i:", "(?-i)"})
      if (rest().starts_with(known)) return;
    unsupported("a group '" + std::string(rest().substr(0, 4)) + "'");
  }

  const std::string& from_;
  const std::string& where_;
  std::string to_;
  size_t at_ = 0;
};

}  // namespace

std::string for_pcre2(const std::string& expression, const std::string& where) {
  return Translation(expression, where).made();
}

}  // namespace data
