// SPDX-License-Identifier: Apache-2.0
//
// Texts made from the manual: LuaLS declarations, the API page and help.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "lua/manual.h"

namespace orrery::lua {
namespace {

// What can be read of our objects besides calling their methods.
struct Field {
  const char *owner, *name, *type;
};
constexpr Field kFields[] = {
    {"Tensor", "shape", "integer[]"},
    {"Tensor", "dtype", "orrery.DType"},
    {"HostTensor", "shape", "integer[]"},
    {"HostTensor", "dtype", "orrery.DType"},
    {"State", "shape", "integer[]"},
    {"State", "dtype", "orrery.DType"},
    {"State", "name", "string"},
    {"State", "frozen", "boolean"},
    {"State", "trained", "boolean"},
    {"Field", "shape", "integer[]"},
    {"Field", "dtype", "orrery.DType"},
    {"Scalar", "value", "number"},
    {"Run", "steps", "integer"},
    {"StepResult", "step", "integer"},
    {"Dataset", "samples", "integer"},
    {"Dataset", "vocab", "integer"},
    {"World", "rank", "integer"},
    {"World", "size", "integer"},
    {"World", "local_rank", "integer"},
    {"World", "local_size", "integer"},
    {"orrery", "nn", "orrery.nn"},
    {"orrery", "optim", "orrery.optim"},
    {"orrery", "strategy", "orrery.strategy"},
    {"orrery", "data", "orrery.data"},
    {"orrery", "world", "orrery.World"},
    {"nn", "init", "orrery.nn.init"},
    {"strategy", "traffic", "orrery.strategy.traffic"},
};

constexpr const char* kOperators[] = {"add", "sub", "mul", "div", "mod", "pow"};

bool is_class(const std::string& owner) { return owner[0] >= 'A' && owner[0] <= 'Z'; }

bool is_meta(const Entry& entry) { return entry.name.compare(0, 2, "__") == 0; }

std::string luals_name(const std::string& owner) {
  return owner == "orrery" ? owner : "orrery." + owner;
}

// Owners in the order of their first entries.
std::vector<std::string> owners() {
  std::vector<std::string> found;
  for (const Entry& entry : manual())
    if (std::find(found.begin(), found.end(), entry.owner) == found.end())
      found.push_back(entry.owner);
  return found;
}

// What the parameter is for and its default, after `before`; "" if there is neither.
std::string about(const Parameter& parameter, const char* before) {
  std::string text = parameter.doc;
  const std::string fallback = "default " + parameter.fallback;
  if (!parameter.fallback.empty()) text = text.empty() ? fallback : text + " (" + fallback + ")";
  return text.empty() ? "" : before + text;
}

std::string options_class(const Entry& entry) {
  return fmt::format("{}.{}.Options", luals_name(entry.owner), entry.name);
}

std::string option_class(const Entry& entry) {
  std::string text = fmt::format("\n---@class {}\n", options_class(entry));
  for (const Parameter& option : entry.options) {
    text += fmt::format("---@field {}{} {}{}\n", option.name, option.optional ? "?" : "",
                        option.type, about(option, " "));
  }
  return text;
}

std::string function_stub(const Entry& entry) {
  std::string text = entry.options.empty() ? "" : option_class(entry);
  text += fmt::format("\n---{}\n", entry.doc);
  std::string names;
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    const Parameter& parameter = entry.parameters[i];
    const bool options = !entry.options.empty() && i + 1 == entry.parameters.size();
    names += (i ? ", " : "") + parameter.name;
    text += fmt::format("---@param {}{} {}{}\n", parameter.name, parameter.optional ? "?" : "",
                        options ? options_class(entry) : parameter.type,
                        parameter.doc.empty() ? "" : " " + parameter.doc);
  }
  if (!entry.returns.empty()) text += fmt::format("---@return {}\n", entry.returns);
  return text + fmt::format("function {}{}{}({}) end\n",
                            is_class(entry.owner) ? entry.owner : luals_name(entry.owner),
                            entry.method ? ":" : ".", entry.name, names);
}

std::string class_stub(const std::string& owner) {
  std::string text = fmt::format("\n---@class {}\n", luals_name(owner));
  for (const Field& field : kFields)
    if (owner == field.owner) text += fmt::format("---@field {} {}\n", field.name, field.type);
  if (owner == "Tensor") {
    for (const char* name : kOperators)
      text += fmt::format("---@operator {}(orrery.Tensor|number): orrery.Tensor\n", name);
    text += "---@operator unm: orrery.Tensor\n";
  }
  if (owner == "orrery" || is_class(owner)) return text + fmt::format("local {} = {{}}\n", owner);
  return text + fmt::format("orrery.{} = {{}}\n", owner);
}

}  // namespace

std::string stubs_text() {
  std::string text =
      "---@meta\n-- Made by `orrery stubs`; do not edit.\n"
      "error('this file is for editors; write require \"orrery\"')\n\n"
      "---@alias orrery.DType 'f32'|'f64'|'bf16'|'f16'|'i32'|'i64'|'u8'|'bool'\n"
      "---@alias orrery.Value {id: integer, name: string, dims: integer[], dtype: orrery.DType, "
      "bytes: integer, "
      "region: string, line: string, op: string, phase: string}\n"
      "---@alias orrery.Schedule fun(step: integer): number\n"
      "---@alias orrery.Initial number|orrery.HostTensor|table\n\n"
      "---@class orrery.Module: {[string|integer]: any}\n"
      "---@overload fun(...): orrery.Tensor ...\n\n"
      "---@class orrery.Strategy\n";
  std::vector<std::string> order = owners();
  std::stable_partition(order.begin(), order.end(), [](auto& o) { return o == "orrery"; });
  for (const std::string& owner : order) {
    text += class_stub(owner);
    for (const Entry& entry : manual())
      if (entry.owner == owner && !is_meta(entry)) text += function_stub(entry);
  }
  return text + "\nreturn orrery\n";
}

std::string page_text() {
  std::string text =
      "# API\n\nEverything a script can call, after `local orrery = require \"orrery\"`; `nn`, "
      "`optim`, "
      "`strategy` and `data`\nare tables of it, classes have capitals. A name with `?` may be left "
      "out. Made by `orrery stubs`, as are the\ndeclarations for editors; "
      "`orrery.help \"name\"` prints the same.\n";
  for (const std::string& owner : owners()) {
    if (owner == "engine" || owner == "Region" || owner == "Program")
      continue;  // the library's own
    text += fmt::format("\n## {}\n\n", owner);
    for (const Field& field : kFields)
      if (owner == field.owner && is_class(owner))
        text += fmt::format("- **`{}.{}`** `{}`\n", owner, field.name, field.type);
    for (const Entry& entry : manual()) {
      if (entry.owner != owner || is_meta(entry)) continue;
      text += fmt::format("- **`{}{}`**: {}\n", entry.call(),
                          entry.returns.empty() ? "" : " -> " + entry.returns, entry.doc);
      for (const Parameter& parameter : entry.parameters)
        if (!about(parameter, "").empty())
          text += fmt::format("  - `{}` `{}`{}\n", parameter.name, parameter.type,
                              about(parameter, ": "));
      for (const Parameter& option : entry.options)
        text += fmt::format("  - `{{{} = {}}}`{}{}\n", option.name, option.type,
                            option.optional ? "" : ", required", about(option, ": "));
    }
  }
  return text;
}

std::string help_text(const std::string& name) {
  std::string text;
  for (const Entry& entry : manual()) {
    if (name != entry.full() && name != "orrery." + entry.full() && name != entry.name) continue;
    text += fmt::format("{}{}\n  {}\n", entry.call(),
                        entry.returns.empty() ? "" : " -> " + entry.returns, entry.doc);
    for (const Parameter& parameter : entry.parameters)
      text += fmt::format("  {}: {}{}\n", parameter.name, parameter.type, about(parameter, ", "));
    for (const Parameter& option : entry.options)
      text += fmt::format("  {{{} = {}}}{}\n", option.name, option.type, about(option, ": "));
  }
  return text;
}

}  // namespace orrery::lua
