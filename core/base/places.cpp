// SPDX-License-Identifier: Apache-2.0
//
// Our own files, found from /proc/self/exe.
#include "base/places.h"

#include "base/config.h"

namespace orrery {
namespace fs = std::filesystem;
namespace {

fs::path program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

// meson-info tells a build tree from the source tree, which has rooms of the same names.
bool is_build_tree(const fs::path& dir) {
  std::error_code error;
  for (const char* room : {"kernels", "plugins", "meson-info"})
    if (!fs::is_directory(dir / room, error)) return false;
  return true;
}

fs::path find_build_tree() {
  for (fs::path dir = program().parent_path(); dir.has_relative_path(); dir = dir.parent_path())
    if (is_build_tree(dir)) return dir;
  return {};
}

}  // namespace

const fs::path& build_tree() {
  static const fs::path tree = find_build_tree();
  return tree;
}

std::vector<fs::path> installed_places(const std::string& directory) {
  std::vector<fs::path> places;
  if (fs::path(directory).is_relative())
    places.push_back((program().parent_path() / ".." / directory).lexically_normal());
  fs::path configured = fs::path(ORRERY_PREFIX) / directory;
  if (places.empty() || places[0] != configured) places.push_back(configured);
  return places;
}

std::string own_directory(const std::string& in_source_tree, const std::string& installed) {
  if (!build_tree().empty()) return in_source_tree;
  const std::vector<fs::path> places = installed_places(installed);
  for (const fs::path& place : places)
    if (fs::is_directory(place)) return place;
  return places.back();
}

}  // namespace orrery
