// SPDX-License-Identifier: Apache-2.0
//
// A part of a tokenizer.json: an object whose fields are asked for by name. What is not of the kind
// that is asked for, and what nobody asks for, is an Error that names file, place and field.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace data {

class Part {
 public:
  // `where` is what errors begin with. REQUIRES: the JSON outlives it. Throws for no object.
  Part(const nlohmann::json& json, std::string where);

  // Throws an Error about this part, whose text follows `where`.
  [[noreturn]] void refuse(const std::string& why) const;
  // The value of the field "type"; "" if there is none.
  std::string type() const;
  const std::string& where() const { return where_; }

  // Whether there is such a field that is not null.
  bool has(const std::string& name);
  // Each throws if the field is missing and there is no `fallback`.
  std::string text(const std::string& name, std::optional<std::string> fallback = {});
  bool flag(const std::string& name, std::optional<bool> fallback = {});
  int64_t integer(const std::string& name, int64_t least, int64_t most);
  // A text of one character.
  char32_t character(const std::string& name);
  const nlohmann::json& any(const std::string& name);
  Part part(const std::string& name);
  std::vector<Part> parts(const std::string& name);

  // A field that has no effect on ids and texts.
  void ignore(const std::string& name) { asked_.insert(name); }
  // Throws for a field for which nobody has asked.
  void finish() const;

 private:
  const nlohmann::json* find(const std::string& name);

  const nlohmann::json* json_;
  std::string where_;
  std::set<std::string> asked_{"type"};
};

// What `make` makes of a part that may hold others of its kind, `depth` of them around this one.
// Throws for too many, and for a field for which `make` has not asked.
template <class Make>
auto made_within(Part& part, int depth, Make&& make) {
  constexpr int most = 16;
  if (depth > most) part.refuse("too many sequences in each other");
  auto made = make(part);
  part.finish();
  return made;
}

}  // namespace data
