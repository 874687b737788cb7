// SPDX-License-Identifier: Apache-2.0
#include "lua/conditions.h"

#include <cctype>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "lua/objects.h"

namespace orrery::lua {
namespace {

// What stands beside == or ~=. A chain is a name with its fields: b.x.
struct Operand {
  enum Kind { other, chain, number } kind = other;
  std::string text;
};

struct Comparison {
  Operand left, right;
  bool equal;
};

using Lines = std::map<int, std::vector<Comparison>>;

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

Operand operand(const std::string& text) {
  if (text.empty() || text.front() == '.' || text.back() == '.') return {};
  if (text == "true" || text == "false") return {Operand::number, text};
  if (text == "nil") return {};
  return {std::isdigit(static_cast<unsigned char>(text[0])) ? Operand::number : Operand::chain,
          text};
}

Operand left_of(const std::string& line, size_t at) {
  while (at > 0 && line[at - 1] == ' ') --at;
  size_t begin = at;
  while (begin > 0 && in_word(line[begin - 1])) --begin;
  if (begin > 0 && std::strchr(":#)]", line[begin - 1])) return {};
  return operand(line.substr(begin, at - begin));
}

Operand right_of(const std::string& line, size_t at) {
  while (at < line.size() && line[at] == ' ') ++at;
  size_t end = at;
  while (end < line.size() && in_word(line[end])) ++end;
  if (end < line.size() && std::strchr(":([{\"'", line[end])) return {};
  return operand(line.substr(at, end - at));
}

// Strings blanked, the comment cut off.
std::string code_of(std::string line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote) {
      if (c == '\\') line[i++] = '"';
      if (i < line.size()) line[i] = '"';
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c, line[i] = '"';
    } else if (line.compare(i, 2, "--") == 0) {
      return line.substr(0, i);
    }
  }
  return line;
}

Lines comparisons(const std::string& source) {
  Lines found;
  std::istringstream text(source);
  if (source[0] == '@')
    text.str((std::ostringstream() << std::ifstream(source.substr(1)).rdbuf()).str());
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    line = code_of(line);
    for (size_t at = 0; (at = line.find("=", at)) != std::string::npos; ++at) {
      if (at == 0 || (line[at - 1] != '=' && line[at - 1] != '~')) continue;
      found[number].push_back({left_of(line, at - 1), right_of(line, at + 1), line[at - 1] == '='});
      ++at;
    }
  }
  return found;
}

// Of a chunk by its name as Lua keeps it; a library chunk has none.
const Lines& comparisons_of(const std::string& source) {
  static std::map<std::string, Lines> known;
  if (source.empty() || source[0] == '=') return known[""];
  const auto at = known.find(source);
  return at != known.end() ? at->second : known.emplace(source, comparisons(source)).first->second;
}

// Pushes the innermost local variable or upvalue of this name; false, and nothing, without one.
bool push_variable(lua_State* L, lua_Debug* frame, const std::string& name) {
  int found = 0;
  for (int i = 1; const char* local = lua_getlocal(L, frame, i); ++i) {
    if (name == local) found = i;
    lua_pop(L, 1);
  }
  if (found) return lua_getlocal(L, frame, found) != nullptr;
  lua_getinfo(L, "f", frame);
  const int function = lua_gettop(L);
  for (int i = 1; const char* upvalue = lua_getupvalue(L, function, i); ++i) {
    if (name == upvalue) return lua_remove(L, function), true;
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return false;
}

// The class of the tensor, "number" or "" for anything else.
std::string kind_of(lua_State* L, lua_Debug* frame, const Operand& operand) {
  if (operand.kind != Operand::chain) return operand.kind == Operand::number ? "number" : "";
  const int top = lua_gettop(L);
  luaL_checkstack(L, 8, "a condition");
  std::istringstream names(operand.text);
  std::string name;
  std::getline(names, name, '.');
  bool there = push_variable(L, frame, name);
  while (there && std::getline(names, name, '.')) {
    there = lua_istable(L, -1);
    if (!there) break;
    push_text(L, name);
    lua_rawget(L, -2);
  }
  std::string kind;
  if (there && is_tensor(L, lua_gettop(L))) kind = describe(L, -1);
  if (there && lua_type(L, -1) == LUA_TNUMBER) kind = "number";
  lua_settop(L, top);
  return kind;
}

void check_line(lua_State* L, lua_Debug* frame, const Comparison& comparison) {
  const std::string left = kind_of(L, frame, comparison.left);
  const std::string right = kind_of(L, frame, comparison.right);
  if (left.empty() || right.empty() || (left == "number") == (right == "number")) return;
  const Operand& tensor = left == "number" ? comparison.right : comparison.left;
  const Operand& number = left == "number" ? comparison.left : comparison.right;
  fail(ORR_INVALID,
       "'{} {} {}' is always {}: it compares {} itself, which has no numbers while the function is "
       "traced; write {}:{}({}) and choose with orrery.where(condition, a, b)",
       comparison.left.text, comparison.equal ? "==" : "~=", comparison.right.text,
       comparison.equal ? "false" : "true", left == "number" ? right : left, tensor.text,
       comparison.equal ? "eq" : "ne", number.text);
}

void on_line(lua_State* L, lua_Debug* frame) {
  guard(L, [frame](lua_State* state) {
    lua_getinfo(state, "Sl", frame);
    const Lines& lines = comparisons_of(frame->source);
    const auto line = lines.find(frame->currentline);
    if (line == lines.end()) return 0;
    for (const Comparison& comparison : line->second) check_line(state, frame, comparison);
    return 0;
  });
}

// Whether the line of a script, "f.lua:7", compares what some expression gives with a number.
bool compares_with_number(const std::string& place) {
  const size_t colon = place.rfind(':');
  if (colon == std::string::npos) return false;
  const Lines& lines = comparisons_of("@" + place.substr(0, colon));
  const auto line = lines.find(std::atoi(place.c_str() + colon + 1));
  if (line == lines.end()) return false;
  for (const Comparison& c : line->second) {
    if (c.left.kind == Operand::other && c.right.kind == Operand::number) return true;
    if (c.right.kind == Operand::other && c.left.kind == Operand::number) return true;
  }
  return false;
}

}  // namespace

ConditionWatch::ConditionWatch(lua_State* L)
    : L(L),
      outer_(lua_gethook(L)),
      outer_mask_(lua_gethookmask(L)),
      outer_count_(lua_gethookcount(L)) {
  lua_sethook(L, on_line, LUA_MASKLINE, 0);
}

ConditionWatch::~ConditionWatch() { lua_sethook(L, outer_, outer_mask_, outer_count_); }

void refuse_unused_conditions(const Program& program, size_t first,
                              const std::vector<ValueId>& results) {
  std::vector<char> used(program.values().size());
  for (const Op& op : program.ops())
    for (ValueId v : op.in) used[static_cast<size_t>(v)] = 1;
  for (ValueId v : results) used[static_cast<size_t>(v)] = 1;
  for (auto& [state, next] : program.updates()) used[static_cast<size_t>(next)] = 1;
  for (size_t i = first; i < program.ops().size(); ++i) {
    const Op& op = program.ops()[i];
    // What a derivative brings along, op.twin, is no condition of the script's.
    if (op.kind != "pointwise" || op.twin != kNone || used[static_cast<size_t>(op.out[0])])
      continue;
    const bool boolean = program.type(op.out[0]).dtype == ORR_BOOL;
    if (!boolean && !compares_with_number(op.site.line)) continue;
    fail(ORR_INVALID,
         "{}nothing uses the tensor that '{}' gives here: Lua's if, and, or, not and == cannot ask "
         "it, as it has no numbers while the function is traced; choose with "
         "orrery.where(condition, a, b)",
         op.site.prefix(), scalar_fn(op.expr.instrs.back().fn).name);
  }
}

}  // namespace orrery::lua
