// SPDX-License-Identifier: Apache-2.0
//
// What to write instead where a script takes one of our objects for a number or a list.
#pragma once

#include <string>

namespace orrery::lua {

// For a member that a class does not have: "; x:tolist() has its elements" or "".
std::string member_hint(const std::string& class_name, const std::string& member, bool is_number);

// For an error of Lua's own, "attempt to perform arithmetic on a HostTensor value": "" for others.
std::string error_hint(const std::string& message);

}  // namespace orrery::lua
