// SPDX-License-Identifier: Apache-2.0
//
// The draft: the handle by which a strategy written in Lua edits a program, with its calls as
// bodies of the API table. A value is given as one of the tables that Draft:values returns, or as
// its number; dims count from 1.
#pragma once

#include <string>
#include <vector>

#include "base/text.h"
#include "edit/edit_table.h"
#include "lua/call.h"
#include "plugin/host.h"

namespace orrery::lua {

// The draft at the index. Throws Error if it is closed, because its strategy is not editing now.
Draft& open_draft(lua_State* L, int index);
// The number of the value at the index.
int32_t id_at(lua_State* L, int index);

// The number that belongs to a name. For an unknown name, throws Error with all `known` names.
template <class Named>
int32_t find(const char* what, const std::string& name, const Named& known) {
  std::vector<std::string> names;
  for (const auto& [text, number] : known) {
    if (text == name) return number;
    names.push_back(text);
  }
  fail(ORR_INVALID, "there is no {} '{}'; there are: {}", what, name, join(names, ", "));
}

// Calls a function of the script as tensor code of the program. Its arguments are a draft, which is
// closed afterwards, and those that more(L) pushes. Returns take(L, first) as call_traced does.
template <class More, class Take>
auto call_with_draft(const Function& function, orr_program* program, const orr_edit* edit,
                     int n_results, More&& more, Take&& take) {
  lua_State* L = function.state();
  const StackTop top(L);
  Draft& draft = push(L, Draft{program, edit});
  struct Closing {  // the script may keep the draft longer than its program exists
    Draft& draft;
    ~Closing() { draft.program = nullptr; }
  } const closing{draft};
  const auto give_all = [&](lua_State*) {
    lua_pushvalue(L, top.at + 1);
    more(L);
  };
  return call_traced(function, *program->program, n_results, give_all, take);
}

// Types of parameters: a value's number, and integers that a call of the table takes as 32 bits.
struct Id {
  int32_t number;
  operator int32_t() const { return number; }
};
struct Count {
  int32_t number;
  operator int32_t() const { return number; }
};
struct FromOne {  // it counts from 1 in Lua, and from 0 in the table
  int32_t number;
  operator int32_t() const { return number; }
};

inline Draft& read(Arguments& in, As<Draft&>) { return open_draft(in.L, in.next()); }
inline Id read(Arguments& in, As<Id>) { return {id_at(in.L, in.next())}; }
inline Count read(Arguments& in, As<Count>) {
  return {static_cast<int32_t>(lua_tointeger(in.L, in.next()))};
}
inline FromOne read(Arguments& in, As<FromOne>) {
  return {static_cast<int32_t>(lua_tointeger(in.L, in.next())) - 1};
}

// Makes a call of the editing table; throws its error.
template <class... P, class... T>
void edit(const Draft& draft, orr_status* (*orr_edit::*entry)(orr_program*, P...), T... given) {
  orrery::check((draft.edit->*entry)(draft.program, given...));
}

inline int32_t raw(int32_t number) { return number; }
inline int64_t raw(int64_t number) { return number; }
inline const char* raw(const std::string& text) { return text.c_str(); }

// A body that passes its arguments to a call of the editing table unchanged.
template <auto entry, class... T>
void handed(Draft& draft, T... given) {
  edit(draft, entry, raw(given)...);
}

}  // namespace orrery::lua
