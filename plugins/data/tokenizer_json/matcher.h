// SPDX-License-Identifier: Apache-2.0
//
// What is found in a text, and how the text is cut there.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "part.h"

namespace data {

// A part of a text: a match, or what lies between two of them.
struct Span {
  size_t begin, end;
  bool is_match;
};
using GiveSpan = std::function<void(const Span&)>;

// [any thread]
class Matcher {
 public:
  virtual ~Matcher() = default;
  // All spans of a text, from its begin to its end; empty ones only where a match is empty.
  virtual void spans(std::string_view text, const GiveSpan& give) const = 0;
};

// Every character of this kind is a match.
std::unique_ptr<Matcher> characters_that(std::function<bool(char32_t)> are);
// Every run of them, as long as one kind goes on: `kind_of` is 0 for no match.
std::unique_ptr<Matcher> runs_of(std::function<int(char32_t)> kind_of);
// The field "pattern", {"String": text} or {"Regex": expression}.
std::unique_ptr<Matcher> pattern_of(Part& part);

enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
// The field "behavior".
Behavior behavior_of(Part& part, const char* fallback = nullptr);

// Cuts a text at its matches. `inverted`: what lies between matches is taken for them.
void cut(std::string_view text, const Matcher& matcher, Behavior behavior, bool inverted,
         const std::function<void(size_t begin, size_t end)>& give);

}  // namespace data
