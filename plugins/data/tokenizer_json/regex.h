// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions as Oniguruma reads them, by which Hugging Face's tokenizers cut texts,
// matched by PCRE2. What the two read differently is written anew, or refused.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace data {

class Regex {
 public:
  // Throws Error, which begins with `where`, for an expression that is wrong or not supported.
  Regex(const std::string& expression, const std::string& where);
  ~Regex();
  Regex(Regex&&) noexcept;

  // `found(begin, end)` for each match, from the left. Throws Error, which begins with `where`, for
  // a text on which the expression takes too many steps. [any thread]
  void each_match(std::string_view text, const std::function<void(size_t, size_t)>& found) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
  std::string where_;
};

// The expression in PCRE2's language. Throws likewise.
std::string for_pcre2(const std::string& expression, const std::string& where);

}  // namespace data
