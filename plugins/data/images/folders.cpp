// SPDX-License-Identifier: Apache-2.0
//
// The order is that of torchvision's ImageFolder: the folders of a class by their whole paths,
// compared byte by byte, and the files of each by their names.
#include "folders.h"

#include <algorithm>
#include <filesystem>

#include "../refuse.h"
#include "image.h"

namespace fs = std::filesystem;

namespace data {
namespace {

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return !ending.empty() && std::ranges::count(kImageEndings, std::string_view(ending).substr(1));
}

// The paths of a folder that are not hidden, sorted.
struct Entries {
  std::vector<std::string> folders, files;
};

Entries entries_of(const std::string& folder) {
  std::error_code error;
  Entries found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().filename().string().starts_with('.')) continue;
    std::error_code broken;  // a link to nothing is a file that cannot be read
    (it->is_directory(broken) ? found.folders : found.files).push_back(it->path().string());
  }
  if (error) refuse(folder, ": cannot be listed: ", error.message());
  std::sort(found.folders.begin(), found.folders.end());
  std::sort(found.files.begin(), found.files.end());
  return found;
}

struct Folder {
  std::string path;
  std::vector<std::string> files;
};

// Adds a folder and all in it; `above` are those that it is in.
void walk(const std::string& path, std::vector<std::string>& above, std::vector<Folder>& found) {
  for (const std::string& outer : above)
    if (fs::is_symlink(path) && fs::equivalent(path, outer))
      refuse(path, ": it is a link to a folder that it is in; take the link away");
  Entries entries = entries_of(path);
  found.push_back({path, std::move(entries.files)});
  above.push_back(path);
  for (const std::string& inner : entries.folders) walk(inner, above, found);
  above.pop_back();
}

}  // namespace

ImageFolders find_images(const std::string& directory) {
  ImageFolders found;
  Entries top = entries_of(directory);
  found.left_out = std::move(top.files);
  for (const std::string& folder : top.folders) {
    std::vector<std::string> above{directory};
    std::vector<Folder> inner;
    walk(folder, above, inner);
    std::sort(inner.begin(), inner.end(), [](auto& a, auto& b) { return a.path < b.path; });
    const size_t before = found.files.size();
    for (const Folder& each : inner)
      for (const std::string& file : each.files)
        if (is_image(file))
          found.files.push_back({file, static_cast<int32_t>(found.classes.size())});
        else
          found.left_out.push_back(file);
    if (found.files.size() == before)
      refuse(folder, ": no images: every folder of ", directory,
             " is a class and has files that end in ", image_endings(),
             "; put some there or take it away");
    found.classes.push_back(fs::path(folder).filename().string());
  }
  if (found.classes.empty())
    refuse(directory, ": no images: expected a directory for each class, with files that end in ",
           image_endings());
  return found;
}

}  // namespace data
