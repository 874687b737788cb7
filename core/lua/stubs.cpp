// SPDX-License-Identifier: Apache-2.0
//
// Texts made from the API table: LuaLS declarations and help.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "lua/api.h"
#include "lua/api_types.h"

namespace orrery::lua {
namespace {

struct Operator {
  const char* method;
  const char* luals;
};
constexpr Operator kOperators[] = {{"__add", "add"}, {"__sub", "sub"}, {"__mul", "mul"},
                                   {"__div", "div"}, {"__mod", "mod"}, {"__pow", "pow"}};

bool is_method(const Api& row) {
  return !row.args.empty() && std::strcmp(row.args[0].name, "self") == 0;
}

bool is_class(const std::string& owner) { return owner[0] >= 'A' && owner[0] <= 'Z'; }

std::string luals_name(const std::string& owner) {
  return owner == "orrery" ? owner : "orrery." + owner;
}

std::string class_of_options(const Api& row) {
  return fmt::format("{}.{}.Options", luals_name(row.owner), row.name);
}

std::string parameter_type(const Api& row, const Arg& arg) {
  if (std::strcmp(arg.type, "options") == 0) return class_of_options(row);
  return api_type(arg.type).luals;
}

std::string option_class(const Api& row) {
  std::string text = fmt::format("\n---@class {}\n", class_of_options(row));
  for (const Arg& option : row.options) {
    text += fmt::format("---@field {}{} {} {}", option.name, option.fallback ? "?" : "",
                        api_type(option.type).luals, option.doc);
    if (option.fallback && std::strcmp(option.fallback, "nil") != 0) {
      text += fmt::format(" (default {})", option.fallback);
    }
    text += "\n";
  }
  return text;
}

std::string function_stub(const Api& row) {
  std::string text = row.options.empty() ? "" : option_class(row);
  text += fmt::format("\n---{}\n", row.doc);
  std::string names;
  for (const Arg& arg : row.args) {
    if (std::strcmp(arg.name, "self") == 0) continue;
    const bool rest = std::strcmp(arg.type, "rest") == 0;
    names += (names.empty() ? "" : ", ") + std::string(rest ? "..." : arg.name);
    text += fmt::format("---@param {}{} {}\n", rest ? "..." : arg.name,
                        arg.fallback && !rest ? "?" : "", parameter_type(row, arg));
  }
  if (*row.returns) text += fmt::format("---@return {}\n", row.returns);
  return text + fmt::format("function {}{}{}({}) end\n",
                            luals_name(row.owner) == "orrery" ? "orrery" : row.owner,
                            is_method(row) ? ":" : ".", row.name, names);
}

std::string class_stub(const std::string& owner) {
  std::string text = fmt::format("\n---@class {}\n", luals_name(owner));
  if (owner == "Tensor" || owner == "HostTensor" || owner == "State" || owner == "Field") {
    text += "---@field shape integer[]\n---@field dtype orrery.DType\n";
  }
  if (owner == "State") text += "---@field name string\n---@field frozen boolean\n";
  if (owner == "World") {
    text +=
        "---@field rank integer\n---@field size integer\n---@field local_rank integer\n"
        "---@field local_size integer\n";
  }
  if (owner == "Tensor") {
    for (const Operator& row : kOperators) {
      text += fmt::format("---@operator {}(orrery.Tensor|number): orrery.Tensor\n", row.luals);
    }
    text += "---@operator unm: orrery.Tensor\n";
  }
  return text + fmt::format("local {} = {{}}\n", owner);
}

std::string signature(const Api& row) {
  std::string names;
  for (const Arg& arg : row.args) {
    if (std::strcmp(arg.name, "self") == 0) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", arg.name);
    if (arg.fallback && std::strcmp(arg.type, "options") != 0)
      names += fmt::format(" = {}", arg.fallback);
  }
  return fmt::format("{}{}{}({}){}{}", row.owner, is_method(row) ? ":" : ".", row.name, names,
                     *row.returns ? " -> " : "", row.returns);
}

}  // namespace

std::string stubs_text() {
  std::string text =
      "---@meta\n-- Made by `orrery stubs` from the API table; do not edit.\n"
      "error('this file is for editors; write require \"orrery\"')\n\n"
      "---@alias orrery.DType 'f32'|'f64'|'bf16'|'f16'|'i32'|'i64'|'u8'|'bool'\n"
      "---@alias orrery.Value {id: integer, name: string, dims: integer[], dtype: orrery.DType, "
      "bytes: integer, "
      "region: string, line: string, op: string, phase: string}\n";
  std::vector<std::string> owners;
  for (const Api& row : api()) {
    if (std::find(owners.begin(), owners.end(), row.owner) == owners.end())
      owners.push_back(row.owner);
  }
  for (const std::string& owner : owners) {
    text += class_stub(owner);
    for (const Api& row : api()) {
      const bool meta = std::strncmp(row.name, "__", 2) == 0;
      if (row.owner == owner && !meta) text += function_stub(row);
    }
    if (!is_class(owner) && owner != "orrery")
      text += fmt::format("orrery.{} = {}\n", owner, owner);
  }
  return text + "\nreturn orrery\n";
}

void write_stubs(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const std::string path = directory + "/orrery.lua";
  std::ofstream file(path);
  file << stubs_text();
  file.flush();
  if (!file) fail(ORR_FAILED, "{}: cannot write", path);
}

std::string help_text(const std::string& name) {
  std::string text;
  for (const Api& row : api()) {
    const std::string full = fmt::format("{}.{}", row.owner, row.name);
    if (name != full && name != row.name) continue;
    text += fmt::format("{}\n  {}\n", signature(row), row.doc);
    for (const Arg& option : row.options) {
      text += fmt::format("  {} ({}{}): {}\n", option.name, api_type(option.type).words,
                          option.fallback ? fmt::format(", default {}", option.fallback) : "",
                          option.doc);
    }
  }
  return text;
}

}  // namespace orrery::lua
