// SPDX-License-Identifier: Apache-2.0
#include "matcher.h"

#include "characters.h"
#include "regex.h"

namespace data {
namespace {

// Gives matches, and what lies between them.
class Spans {
 public:
  Spans(std::string_view text, const GiveSpan& give) : size_(text.size()), give_(give) {}
  void match(size_t begin, size_t end) {
    if (behind_ < begin) give_({behind_, begin, false});
    give_({begin, end, true});
    behind_ = end;
  }
  void end() {
    if (behind_ < size_) give_({behind_, size_, false});
  }

 private:
  size_t size_, behind_ = 0;
  const GiveSpan& give_;
};

class Runs : public Matcher {
 public:
  Runs(std::function<int(char32_t)> kind_of, bool apart)
      : kind_of_(std::move(kind_of)), apart_(apart) {}

  void spans(std::string_view text, const GiveSpan& give) const override {
    Spans spans(text, give);
    size_t first = 0;
    int kind = 0;
    each_character(text, [&](char32_t code, size_t begin, size_t) {
      const int next = kind_of_(code);
      if (next == kind && !apart_) return;
      if (kind) spans.match(first, begin);
      first = begin, kind = next;
    });
    if (kind) spans.match(first, text.size());
    spans.end();
  }

 private:
  std::function<int(char32_t)> kind_of_;
  bool apart_;
};

class Text : public Matcher {
 public:
  explicit Text(std::string wanted) : wanted_(std::move(wanted)) {}
  void spans(std::string_view text, const GiveSpan& give) const override {
    Spans spans(text, give);
    for (size_t at = text.find(wanted_); at != text.npos;
         at = text.find(wanted_, at + wanted_.size()))
      spans.match(at, at + wanted_.size());
    spans.end();
  }

 private:
  std::string wanted_;
};

class Expression : public Matcher {
 public:
  explicit Expression(Regex regex) : regex_(std::move(regex)) {}
  void spans(std::string_view text, const GiveSpan& give) const override {
    Spans spans(text, give);
    regex_.each_match(text, [&](size_t begin, size_t end) { spans.match(begin, end); });
    spans.end();
  }

 private:
  Regex regex_;
};

}  // namespace

std::unique_ptr<Matcher> characters_that(std::function<bool(char32_t)> are) {
  return std::make_unique<Runs>([are](char32_t code) { return are(code) ? 1 : 0; }, true);
}

std::unique_ptr<Matcher> runs_of(std::function<int(char32_t)> kind_of) {
  return std::make_unique<Runs>(std::move(kind_of), false);
}

std::unique_ptr<Matcher> pattern_of(Part& part) {
  Part pattern = part.part("pattern");
  if (pattern.has("Regex")) {
    const std::string expression = pattern.text("Regex");
    pattern.finish();
    return std::make_unique<Expression>(Regex(expression, part.where()));
  }
  const std::string text = pattern.text("String");
  if (text.empty()) pattern.refuse("the text is empty");
  pattern.finish();
  return std::make_unique<Text>(text);
}

Behavior behavior_of(Part& part, const char* fallback) {
  const std::string name = fallback ? part.text("behavior", fallback) : part.text("behavior");
  if (name == "Removed") return Behavior::removed;
  if (name == "Isolated") return Behavior::isolated;
  if (name == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (name == "MergedWithNext") return Behavior::merged_with_next;
  if (name == "Contiguous") return Behavior::contiguous;
  part.refuse("the behavior '" + name + "' is not supported");
}

void cut(std::string_view text, const Matcher& matcher, Behavior behavior, bool inverted,
         const std::function<void(size_t begin, size_t end)>& give) {
  std::optional<Span> held;  // the last span, which the next may join
  const auto joins = [&](const Span& next) {
    switch (behavior) {
      case Behavior::contiguous: return held->is_match == next.is_match;
      case Behavior::merged_with_previous: return next.is_match && !held->is_match;
      case Behavior::merged_with_next: return held->is_match && !next.is_match;
      default: return false;
    }
  };
  const auto give_held = [&] {
    const bool is_gone = behavior == Behavior::removed && held->is_match;
    if (!is_gone && held->begin < held->end) give(held->begin, held->end);
  };
  matcher.spans(text, [&](Span next) {
    next.is_match = next.is_match != inverted;
    if (!held) {
      held = next;
    } else if (joins(next)) {
      held->end = next.end, held->is_match = next.is_match;
    } else {
      give_held();
      held = next;
    }
  });
  if (held) give_held();
}

}  // namespace data
