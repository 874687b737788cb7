// SPDX-License-Identifier: Apache-2.0
//
// The images in a directory that has a folder for each class.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace data {

struct ImageFile {
  std::string path;
  int32_t label;
};

struct ImageFolders {
  std::vector<std::string> classes;
  std::vector<ImageFile> files;       // in torchvision's order
  std::vector<std::string> left_out;  // neither hidden nor images in the folder of a class
};

// Folders in the folder of a class belong to it; hidden folders and files count nowhere. Throws
// Error, which names the folder, for a class without images.
ImageFolders find_images(const std::string& directory);

}  // namespace data
