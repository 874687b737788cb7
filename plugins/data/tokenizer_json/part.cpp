// SPDX-License-Identifier: Apache-2.0
#include "part.h"

#include <nlohmann/json.hpp>

#include <orrery/sdk/utf8.hpp>
#include "../refuse.h"

namespace data {

Part::Part(const nlohmann::json& json, std::string where) : json_(&json), where_(std::move(where)) {
  if (!json.is_object()) refuse("expected an object, it is " + std::string(json.type_name()));
}

void Part::refuse(const std::string& why) const { data::refuse(where_, ": ", why); }

std::string Part::type() const {
  const auto found = json_->find("type");
  if (found == json_->end()) return "";
  if (!found->is_string()) refuse("'type' is not a text");
  return found->get<std::string>();
}

const nlohmann::json* Part::find(const std::string& name) {
  asked_.insert(name);
  const auto found = json_->find(name);
  return found == json_->end() || found->is_null() ? nullptr : &*found;
}

bool Part::has(const std::string& name) { return find(name) != nullptr; }

const nlohmann::json& Part::any(const std::string& name) {
  const nlohmann::json* found = find(name);
  if (!found) refuse("'" + name + "' is missing");
  return *found;
}

std::string Part::text(const std::string& name, std::optional<std::string> fallback) {
  if (fallback && !has(name)) return *fallback;
  const nlohmann::json& found = any(name);
  if (!found.is_string()) refuse("'" + name + "' is not a text");
  return found.get<std::string>();
}

bool Part::flag(const std::string& name, std::optional<bool> fallback) {
  if (fallback && !has(name)) return *fallback;
  const nlohmann::json& found = any(name);
  if (!found.is_boolean()) refuse("'" + name + "' is neither true nor false");
  return found.get<bool>();
}

int64_t Part::integer(const std::string& name, int64_t least, int64_t most) {
  const nlohmann::json& found = any(name);
  const bool fits =
      found.is_number_unsigned() ? found.get<uint64_t>() <= INT64_MAX : found.is_number_integer();
  const int64_t value = fits ? found.get<int64_t>() : 0;
  if (!fits || value < least || value > most)
    refuse("'" + name + "' is " + found.dump().substr(0, 40) + ", expected a whole number from " +
           std::to_string(least) + " to " + std::to_string(most));
  return value;
}

char32_t Part::character(const std::string& name) {
  const std::string found = text(name);
  const orr::CodePoint first = found.empty() ? orr::CodePoint{0, 0} : orr::code_point(found, 0);
  if (!first.bytes || first.bytes != found.size())
    refuse("'" + name + "' is '" + found.substr(0, 40) + "', expected one character");
  return first.code;
}

Part Part::part(const std::string& name) { return {any(name), where_ + ": " + name}; }

std::vector<Part> Part::parts(const std::string& name) {
  const nlohmann::json& list = any(name);
  if (!list.is_array()) refuse("'" + name + "' is not a list");
  std::vector<Part> all;
  for (const nlohmann::json& each : list)
    all.emplace_back(each, where_ + ": " + name + "[" + std::to_string(all.size()) + "]");
  return all;
}

void Part::finish() const {
  for (const auto& [name, value] : json_->items())
    if (!asked_.contains(name))
      refuse("the field '" + name + "' is not supported" + (type().empty() ? "" : " in " + type()));
}

}  // namespace data
