// SPDX-License-Identifier: Apache-2.0
#include "lua/hints.h"

#include <cctype>
#include <set>

namespace orrery::lua {
namespace {

struct Hint {
  const char* class_name;
  const char* as_number;
  const char* element;  // of x[1]
};

constexpr Hint kHints[] = {
    {"HostTensor", "take its numbers by :item() or :tolist(), or compute in an orrery.func",
     "write x:tolist()[1]"},
    {"StepResult", "take the loss by :mean(), other results by :get(name)", nullptr},
    {"State", "take its numbers by :read():item() or :read():tolist()",
     "write x:read():tolist()[1], or x:slice(dim, first, last) in a traced function"},
    {"Scalar", "its number is x.value", nullptr},
    {"Tensor",
     "a Tensor has no numbers while its function is traced: compute with its methods, and return "
     "what you want to see, from a loss as a second result {name = x} that result:get(name) reads",
     "write x:slice(dim, first, last)"},
};

bool word_at(const std::string& text, size_t at, size_t size) {
  const auto letter = [&](size_t i) {
    return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i]));
  };
  return !(at > 0 && letter(at - 1)) && !letter(at + size);
}

}  // namespace

std::string member_hint(const std::string& class_name, const std::string& member, bool is_number) {
  static const std::set<std::string> asks = {"item", "tolist", "numpy", "read", "value", "get"};
  for (const Hint& hint : kHints) {
    if (class_name != hint.class_name) continue;
    if (is_number) return std::string("; ") + (hint.element ? hint.element : hint.as_number);
    return asks.count(member) ? std::string("; ") + hint.as_number : "";
  }
  return "";
}

std::string error_hint(const std::string& message) {
  if (message.find("attempt to ") == std::string::npos &&
      message.find("bad argument #") == std::string::npos)
    return "";
  for (const Hint& hint : kHints) {
    const std::string name = hint.class_name;
    const size_t at = message.find(name);
    if (at == std::string::npos || !word_at(message, at, name.size())) continue;
    return message.find(hint.as_number) == std::string::npos ? std::string("; ") + hint.as_number
                                                             : "";
  }
  return "";
}

}  // namespace orrery::lua
