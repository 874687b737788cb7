// SPDX-License-Identifier: Apache-2.0
//
// A strategy in Lua on trial: the file returns what strategy.define has made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "conformance/test.h"

namespace orrery::judge {

// What a strategy says of itself.
struct Said {
  std::string name;
  int32_t numeric_class = 0;
  std::string requires_;  // words that another strategy must provide, with commas between
  std::string call;       // a Lua expression: the strategy as an entry of a stack
};

// Runs the file of the subject. Throws Error if it returns no strategy.
Said said_by_lua(const Subject& subject);

// Makes the modules beside the file, and those of its folder by the folder's name, modules of a
// script in `directory`.
void link_neighbours(const std::filesystem::path& file, const std::filesystem::path& directory);

}  // namespace orrery::judge
