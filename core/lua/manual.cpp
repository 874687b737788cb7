// SPDX-License-Identifier: Apache-2.0
#include "lua/manual.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "lower/contract.h"
#include "lua/api.h"
#include "lua/api_types.h"
#include "lua/script.h"
#include "plugin/registry.h"

namespace fs = std::filesystem;

namespace orrery::lua {
namespace {

Parameter parameter_of(const Arg& arg) {
  const bool rest = std::strcmp(arg.type, "rest") == 0;
  const bool given = arg.fallback && std::strcmp(arg.fallback, "nil") != 0;
  return {rest ? "..." : arg.name, api_type(arg.type).luals, arg.doc, given ? arg.fallback : "",
          arg.fallback && !rest};
}

Entry entry_of(const Api& row) {
  Entry entry{row.owner, row.name, false, row.returns, row.doc, {}, {}};
  for (const Arg& arg : row.args) {
    if (std::strcmp(arg.name, "self") == 0) {
      entry.method = true;
    } else {
      entry.parameters.push_back(parameter_of(arg));
    }
  }
  for (const Arg& option : row.options) entry.options.push_back(parameter_of(option));
  return entry;
}

// The first word, which may hold blanks inside of brackets; the rest stays in `line`.
std::string take_word(std::string& line) {
  size_t end = 0;
  for (int depth = 0; end < line.size() && (line[end] != ' ' || depth > 0); ++end) {
    if (std::strchr("({[", line[end])) ++depth;
    if (std::strchr(")}]", line[end])) --depth;
  }
  std::string word = line.substr(0, end);
  line.erase(0, line.find_first_not_of(' ', end));
  return word;
}

// "NAME[?] TYPE text" and "NAME TYPE[=DEFAULT] text".
Parameter parameter_in(std::string line) {
  Parameter parameter;
  parameter.name = take_word(line);
  parameter.type = take_word(line);
  parameter.doc = line;
  parameter.optional = parameter.name.back() == '?';
  if (parameter.optional) parameter.name.pop_back();
  const size_t equals = parameter.type.find('=');
  if (equals != std::string::npos) {
    parameter.fallback = parameter.type.substr(equals + 1);
    parameter.type.resize(equals);
  }
  return parameter;
}

// "nn.init.normal(deviation, mean)" or "Optimizer:attach(model)".
Entry entry_in(const std::string& call, const std::string& file) {
  const size_t open = call.find('('), dot = call.find_last_of(".:", open);
  if (open == std::string::npos || dot == std::string::npos)
    fail(ORR_FAILED, "{}: '{}' is no call", file, call);
  Entry entry;
  entry.owner = call.substr(0, dot), entry.name = call.substr(dot + 1, open - dot - 1);
  entry.method = call[dot] == ':';
  return entry;
}

void read_line(Entry& entry, const std::string& line) {
  const auto after = [&](const char* tag) {
    const size_t size = std::strlen(tag);
    return line.compare(0, size, tag) == 0 ? line.substr(size) : "";
  };
  if (std::string text = after("@param "); !text.empty()) {
    entry.parameters.push_back(parameter_in(text));
  } else if (text = after("@option "); !text.empty()) {
    entry.options.push_back(parameter_in(text));
    entry.options.back().optional = true;
  } else if (text = after("@return "); !text.empty()) {
    entry.returns = text;
  } else {
    entry.doc += (entry.doc.empty() ? "" : " ") + line.substr(line.find_first_not_of(' '));
  }
}

void read_library(const fs::path& file, std::vector<Entry>& entries) {
  std::ifstream text(file);
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    const bool block = line.compare(0, 3, "---") == 0 && line.size() > 3;
    if (block && !inside) entries.push_back(entry_in(line.substr(4), file.filename().string()));
    if (block && inside) read_line(entries.back(), line.substr(3));
    inside = block;
  }
}

Entry entry_of_strategy(const std::string& name) {
  const orr_strategy_info info = described({name, {}, ""});
  Entry entry{"strategy", name, false, "orrery.Strategy", "The strategy plugin of this name.",
              {},         {}};
  entry.parameters.push_back({"options", "table", "", "", true});
  for (int32_t i = 0; i < info.n_options; ++i) {
    const orr_option& option = info.options[i];
    const char* type = option.type == ORR_ATTR_INT    ? "integer"
                       : option.type == ORR_ATTR_REAL ? "number"
                                                      : "any";
    entry.options.push_back({option.name, type, option.doc ? option.doc : "",
                             option.fallback ? option.fallback : "", !option.required});
  }
  return entry;
}

std::vector<Entry> collect() {
  std::vector<Entry> entries;
  for (const Api& row : api()) entries.push_back(entry_of(row));
  std::vector<fs::path> files;
  for (const auto& file : fs::recursive_directory_iterator(fs::path(lua_library()) / "orrery"))
    if (file.path().extension() == ".lua") files.push_back(file.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) read_library(file, entries);
  for (const std::string& name : Registry::get().names(ORR_KIND_STRATEGY))
    entries.push_back(entry_of_strategy(name));
  return entries;
}

}  // namespace

std::string Entry::call() const {
  std::string names;
  for (const Parameter& parameter : parameters)
    names += (names.empty() ? "" : ", ") + parameter.name + (parameter.optional ? "?" : "");
  return fmt::format("{}{}{}({})", owner, method ? ":" : ".", name, names);
}

const std::vector<Entry>& manual() {
  static const std::vector<Entry> entries = collect();
  return entries;
}

}  // namespace orrery::lua
