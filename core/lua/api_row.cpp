// SPDX-License-Identifier: Apache-2.0
//
// Parses the declarations of the API table.
#include <string_view>

#include "lua/api.h"

namespace orrery::lua {
namespace {

// Removes the text up to the mark, with the mark, and returns what is before the mark; if there is
// no mark, all of the text.
std::string_view take(std::string_view& text, std::string_view mark) {
  const size_t at = std::min(text.find(mark), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + mark.size(), text.size()));
  return head;
}

// Parses an argument: "name: type = default", "name?: type", "options?" or "...".
Arg arg_in(std::string_view text) {
  std::string_view declared = take(text, " = ");
  std::string_view name = take(declared, ": ");
  Arg arg;
  if (!text.empty()) arg.fallback = text;
  if (name.ends_with('?')) {
    name.remove_suffix(1);
    arg.fallback = "nil";
  }
  arg.name = name;
  arg.type = api_type(name == "..." ? "rest" : declared.empty() ? name : declared);
  if (!arg.type) fail(ORR_FAILED, "the API table has an unknown type in '{}: {}'", name, declared);
  return arg;
}

std::string type_of(std::string_view name) {
  const ApiType* type = api_type(name);
  return type ? type->luals : std::string(name);
}

Arg& named(std::vector<Arg>& args, std::string_view name) {
  for (Arg& arg : args)
    if (arg.name == name) return arg;
  fail(ORR_FAILED, "the API table tells of an unknown argument '{}'", name);
}

}  // namespace

Api::Api(std::string_view declaration, Body lua_body) : body(lua_body) {
  std::string_view text = declaration;
  std::string_view signature = take(text, "; ");
  doc = take(text, " @");
  const char mark = signature[signature.find_first_of(".:")];
  owner = take(signature, {&mark, 1});
  if (signature.find('(') == signature.npos) {
    kind = field;
    name = take(signature, ": ");
    returns = signature;
    return;
  }
  name = take(signature, "(");
  if (mark == ':') {
    kind = method;
    args.push_back({"self", "", api_type(owner), {}});
  }
  std::string_view given = take(signature, ")");
  while (!given.empty()) args.push_back(arg_in(take(given, ", ")));
  take(signature, " -> ");
  returns = type_of(signature);
  while (!text.empty()) {
    std::string_view about = take(text, " @");
    const bool option = take(about, " ") == "option";
    const std::string_view declared = take(about, "; ");
    if (option) options.push_back(arg_in(declared));
    (option ? options.back() : named(args, declared)).doc = about;
  }
}

}  // namespace orrery::lua
