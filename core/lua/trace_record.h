// SPDX-License-Identifier: Apache-2.0
//
// What a function's trace was, to notice when it would be another one now. Lua tells nobody that a
// script changed what a function reads, or that the function draws its own random numbers; so it is
// traced again when something that it closes over changed, and before runs 2, 3, 5, 9, ... in any
// case, and the two programs are compared. What has changed often without another program (the
// count of steps in a table that a loss reads) waits for those runs. [main thread]
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lua/captured.h"
#include "program/program.h"

namespace orrery::lua {

class TraceRecord {
 public:
  // Traces into an empty program and returns what the function gave.
  using Again = std::function<std::vector<ValueId>(Program&)>;

  // Has check() look at what the function closes over; false for one that is not the script's.
  bool watch(lua_State* L, int index) { return captured_.watch(L, index); }
  // Remembers the trace that has just been made: the first, or the first in training.
  void keep(lua_State* L, const Program& program, std::vector<ValueId> results, Again again);
  // Throws Error if the function would be traced to another program now.
  void check(lua_State* L);

 private:
  bool is_news(const std::map<std::string, std::string>& changes) const;

  Captured captured_;
  std::map<std::string, int> harmless_;  // how often each value changed, and the program did not
  std::unique_ptr<Program> program_;
  std::vector<ValueId> results_;
  Again again_;
  bool training_ = false;
  unsigned runs_ = 0;
};

}  // namespace orrery::lua
