// SPDX-License-Identifier: Apache-2.0
//
// Keeps the trace of a function, to notice when tracing it now would give another program. Lua does
// not report that a script has changed what a function reads, or that the function draws its own
// random numbers. So the function is traced again when a value that it closes over has changed, at
// once when it has drawn from math.random, and in any case before runs 2, 3, 5, 9, ..., and the two
// programs are compared. A value that has
// often changed without changing the program (such as a count of steps) is only checked before
// those runs. [main thread]
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
  // Traces the function into an empty program and returns its results.
  using Again = std::function<std::vector<ValueId>(Program&)>;

  // Lets check() look at the values that the function closes over. Returns false, and does nothing,
  // for a function that is not the script's.
  bool watch(lua_State* L, int index) { return captured_.watch(L, index); }
  // Keeps the trace that has just been made, if it is the first, or the first in training. `random`
  // is what random_state() was before it. Throws Error as check() does.
  void keep(lua_State* L, const Program& program, std::vector<ValueId> results, Again again,
            const std::string& random);
  // Throws Error if tracing the function now would give another program.
  void check(lua_State* L);

 private:
  bool is_news(const std::map<std::string, std::string>& changes) const;
  void compare(lua_State* L, const std::map<std::string, std::string>& changes);

  Captured captured_;
  std::map<std::string, int> harmless_;  // by value: how often it changed and the program did not
  std::unique_ptr<Program> program_;
  std::vector<ValueId> results_;
  Again again_;
  bool training_ = false;
  unsigned runs_ = 0;
};

}  // namespace orrery::lua
