// SPDX-License-Identifier: Apache-2.0
//
// Where our own files lie: beside a program in its build tree, or under the prefix it was installed
// to. Found from the running program, so that no environment variable is needed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace orrery {

// The build tree that the running program lies in (any depth); empty if it is not in one.
const std::filesystem::path& build_tree();

// Candidates for an installed directory such as ORRERY_PLUGINDIR, which may be relative to the
// prefix: first relative to the program (a moved prefix works), then under the configured prefix.
std::vector<std::filesystem::path> installed_places(const std::string& directory);

}  // namespace orrery
