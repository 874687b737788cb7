// SPDX-License-Identifier: Apache-2.0
//
// A snapshot of the values that Lua functions close over: numbers, texts and booleans, also those
// in tables and in functions that they call. Tracing freezes such values into the program; the
// snapshot lets a later step notice that the script has changed one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

class Captured {
 public:
  // Adds a Lua function. Returns false, and adds nothing, for functions of the library or of C.
  bool watch(lua_State* L, int index);
  // Takes the snapshot.
  void take(lua_State* L);
  uint64_t hash() const { return hash_; }  // of the snapshot
  // The values that differ from those at take(), by name: {"'cfg.k' of the function at f.lua:7",
  // "was 1 when the step was traced and is 2 now"}. Tables of more than kMostEntries entries, and
  // values inside more than kMostDepth tables, are left out.
  std::map<std::string, std::string> changes(lua_State* L) const;

  static constexpr int kMostEntries = 256, kMostDepth = 8;

  struct Entry {
    std::string name, value;
  };

 private:
  std::vector<Function> functions_;
  std::vector<Entry> entries_;
  uint64_t hash_ = 0;
};

}  // namespace orrery::lua
