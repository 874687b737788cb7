// SPDX-License-Identifier: Apache-2.0
//
// What functions close over, as it was at one moment: their numbers, texts and booleans, also those
// in tables and in the functions that they call. Tracing freezes such values; a snapshot lets a
// later step notice that the script changed one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lua/layer.h"

namespace orrery::lua {

class Captured {
 public:
  // Watches a Lua function; false, and nothing is watched, for one of the library or of C.
  bool watch(lua_State* L, int index);
  // Remembers the values of now.
  void take(lua_State* L);
  // What has another value than at take(), by names: {"'cfg.k' of the function at f.lua:7", "was 1
  // when the step was traced and is 2 now"}. Tables of more than kMostEntries entries, and what
  // lies deeper than kMostDepth tables, are not looked at.
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
