// SPDX-License-Identifier: Apache-2.0
//
// A text that many things share, such as a line of the user's script. Each text is kept once, until
// the process ends, so that names are copied and compared as pointers. [any thread]
#pragma once

#include <fmt/format.h>

#include <string>

namespace orrery {

class Name {
 public:
  Name() = default;
  Name(const std::string& text);                       // NOLINT: meant to convert
  Name(const char* text) : Name(std::string(text)) {}  // NOLINT

  const std::string& str() const { return *text_; }
  operator const std::string&() const { return *text_; }  // NOLINT: meant to convert
  const char* c_str() const { return text_->c_str(); }
  bool empty() const { return text_->empty(); }
  bool operator==(const Name& other) const { return text_ == other.text_; }
  bool operator==(const std::string& text) const { return *text_ == text; }
  bool operator==(const char* text) const { return *text_ == text; }
  friend std::string operator+(const std::string& a, const Name& b) { return a + b.str(); }
  friend std::string operator+(const Name& a, const std::string& b) { return a.str() + b; }

 private:
  inline static const std::string none_;
  const std::string* text_ = &none_;
};

}  // namespace orrery

template <>
struct fmt::formatter<orrery::Name> : fmt::formatter<std::string> {};
