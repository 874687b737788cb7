// SPDX-License-Identifier: Apache-2.0
#include "lua/captured.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

namespace orrery::lua {
namespace {

bool is_script_function(lua_State* L, int index) {
  if (!lua_isfunction(L, index) || lua_iscfunction(L, index)) return false;
  lua_Debug info;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &info);
  return std::strncmp(info.source, kLibraryMark, std::strlen(kLibraryMark)) != 0;
}

std::string defined_at(lua_State* L, int index) {
  lua_Debug info;
  lua_pushvalue(L, index);
  lua_getinfo(L, ">S", &info);
  return fmt::format("{}:{}", info.source[0] == '@' ? info.source + 1 : info.short_src,
                     info.linedefined);
}

// Where a value was found: a chain of names back to an upvalue, and the function with that upvalue.
struct AccessPath {
  const AccessPath* outer;
  const char* name;  // null: `index`
  lua_Integer index;
  std::string text() const {
    if (!name) return fmt::format("{}[{}]", outer->text(), index);
    return outer ? outer->text() + "." + name : name;
  }
};

// Walks over all values that functions close over, each once, in the order of Lua's tables.
class Walk {
 public:
  // `entries` gets the values that are found. Null: only their hash is computed, which is many
  // times faster.
  Walk(lua_State* L, std::vector<Captured::Entry>* entries) : L(L), entries_(entries) {
    for (const char* shelf : {"orrery", LUA_LOADED_TABLE}) skip_tables_of(shelf);
  }

  void function(int index) {
    if (!is_script_function(L, index) || !seen_.insert(lua_topointer(L, index)).second) return;
    luaL_checkstack(L, 8, "values that functions close over");
    const int outer = function_;
    function_ = lua_absindex(L, index);
    const char* name = nullptr;
    for (int i = 1; (name = lua_getupvalue(L, function_, i)) != nullptr; ++i) {
      if (std::strcmp(name, "_ENV") != 0) value(AccessPath{nullptr, name, 0}, 0);
      lua_pop(L, 1);
    }
    function_ = outer;
  }

  uint64_t hash() const { return hash_; }

 private:
  // Skips the tables of the library and of Lua itself, which are not values of the script.
  void skip_tables_of(const char* shelf) {
    if (lua_getfield(L, LUA_REGISTRYINDEX, shelf) == LUA_TTABLE) {
      seen_.insert(lua_topointer(L, -1));
      for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
        if (lua_istable(L, -1)) seen_.insert(lua_topointer(L, -1));
    }
    lua_pop(L, 1);
  }

  void mix(const void* data, size_t size) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < size; ++i) hash_ = (hash_ ^ bytes[i]) * 1099511628211ULL;
  }

  // Visits the value on top of the stack.
  void value(const AccessPath& place, int depth) {
    const int type = lua_type(L, -1);
    if (type == LUA_TTABLE) return table(place, depth);
    mix(&type, sizeof type);
    if (type == LUA_TSTRING) {
      size_t size = 0;
      const char* text = lua_tolstring(L, -1, &size);
      mix(text, size);
    } else if (type == LUA_TNUMBER) {
      const double number = lua_tonumber(L, -1);
      mix(&number, sizeof number);
    } else if (type == LUA_TBOOLEAN) {
      hash_ += static_cast<uint64_t>(lua_toboolean(L, -1));
    } else {
      const void* pointer = lua_topointer(L, -1);
      mix(&pointer, sizeof pointer);
    }
    if (entries_) entries_->push_back({name_of(place), text_of(type)});
    if (type == LUA_TFUNCTION) function(lua_gettop(L));
  }

  void table(const AccessPath& place, int depth) {
    const int index = lua_gettop(L);
    if (depth == Captured::kMostDepth || lua_rawlen(L, index) > Captured::kMostEntries) return;
    if (!seen_.insert(lua_topointer(L, index)).second) return;
    luaL_checkstack(L, 8, "tables that functions close over");
    int count = 0;
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
      const int key = lua_type(L, -2);
      if (key == LUA_TSTRING) {
        value(AccessPath{&place, lua_tostring(L, -2), 0}, depth + 1);
      } else if (lua_isinteger(L, -2)) {
        value(AccessPath{&place, nullptr, lua_tointeger(L, -2)}, depth + 1);
      }
      if (++count == Captured::kMostEntries) return lua_settop(L, index);
    }
  }

  std::string name_of(const AccessPath& place) {
    return fmt::format("'{}' of the function at {}", place.text(), defined_at(L, function_));
  }

  std::string text_of(int type) {
    if (type == LUA_TBOOLEAN) return lua_toboolean(L, -1) ? "true" : "false";
    if (type <= LUA_TSTRING && type != LUA_TLIGHTUSERDATA) return describe(L, -1);
    return fmt::format("{} ({})", describe(L, -1), lua_topointer(L, -1));
  }

  lua_State* L;
  std::vector<Captured::Entry>* entries_;
  std::unordered_set<const void*> seen_;
  uint64_t hash_ = 1469598103934665603ULL;
  int function_ = 0;
};

uint64_t walk(lua_State* L, const std::vector<Function>& functions,
              std::vector<Captured::Entry>* entries) {
  Walk all(L, entries);
  for (const Function& function : functions) {
    function.push();
    all.function(lua_gettop(L));
    lua_pop(L, 1);
  }
  return all.hash();
}

}  // namespace

bool Captured::watch(lua_State* L, int index) {
  if (!is_script_function(L, index)) return false;
  functions_.emplace_back(L, index);
  return true;
}

void Captured::take(lua_State* L) {
  entries_.clear();
  hash_ = walk(L, functions_, &entries_);
}

std::map<std::string, std::string> Captured::changes(lua_State* L) const {
  if (walk(L, functions_, nullptr) == hash_) return {};
  std::vector<Entry> now;
  walk(L, functions_, &now);
  std::multimap<std::string, std::string> was;
  std::map<std::string, std::string> is;
  for (const Entry& entry : entries_) was.emplace(entry.name, entry.value);
  for (const Entry& entry : now) {
    auto [at, end] = was.equal_range(entry.name);
    at = std::find_if(at, end, [&](auto& before) { return before.second == entry.value; });
    at == end ? void(is.emplace(entry.name, entry.value)) : void(was.erase(at));
  }
  for (const auto& [name, value] : was) is.emplace(name, "nil");
  for (auto& [name, text] : is) {
    const auto before = was.find(name);
    text = fmt::format("was {} when the step was traced and is {} now",
                       before == was.end() ? "nil" : before->second, text);
  }
  return is;
}

}  // namespace orrery::lua
