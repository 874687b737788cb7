// SPDX-License-Identifier: Apache-2.0
//
// Finds Orrery's own files: beside the program in its build tree, or under the prefix that it was
// installed to. The search begins at the running program, so no environment variable is needed.
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

// A directory of ours: of the source tree for a program in its build tree, else the first of the
// installed places that is there, or the last of them.
std::string own_directory(const std::string& in_source_tree, const std::string& installed);

}  // namespace orrery
