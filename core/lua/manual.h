// SPDX-License-Identifier: Apache-2.0
//
// Everything that a script can call, in one list: the rows of the API table (lua/api.h), the blocks
// of "---" lines that stand over functions of the Lua library, and the strategy plugins that are
// here. Editors' stubs, docs/api.md and orrery.help are made of it.
//
// A block of the library: its first line is the call, then sentences, then
//   ---@param NAME[?] TYPE text       one for each argument; ? may be left out
//   ---@option NAME TYPE[=DEFAULT] text   a field of the last argument
//   ---@return TYPE
#pragma once

#include <string>
#include <vector>

namespace orrery::lua {

struct Parameter {
  std::string name, type, doc, fallback;  // type: as LuaLS writes it; fallback: "" if none
  bool optional = false;
};

struct Entry {
  std::string owner, name;  // "nn.init", "normal"; a class ("Run") begins with a capital
  bool method = false;      // called with a colon
  std::string returns, doc;
  std::vector<Parameter> parameters, options;

  std::string full() const { return owner + "." + name; }
  std::string call() const;  // "orrery.func(fn)", "Run:save(directory, extra?)"
};

const std::vector<Entry>& manual();

// What `orrery.help(name)` prints; "" for an unknown name.
std::string help_text(const std::string& name);
// The LuaLS declarations of everything, as one file, and docs/api.md.
std::string stubs_text();
std::string page_text();

}  // namespace orrery::lua
