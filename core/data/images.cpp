// SPDX-License-Identifier: Apache-2.0
#include "data/images.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "data/bytes.h"
#include "data/pixels.h"
#include "data/resize.h"

namespace fs = std::filesystem;

namespace orrery {
namespace {

constexpr int64_t kMostEdge = 4096;
constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // of a file

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

// The paths in a directory that `wanted` holds for, sorted.
template <class Wanted>
std::vector<fs::path> entries(const fs::path& directory, Wanted&& wanted) {
  std::error_code error;
  std::vector<fs::path> found;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (wanted(*it)) found.push_back(it->path());
  if (error) fail(ORR_INVALID, "{}: cannot be listed: {}", directory.string(), error.message());
  std::sort(found.begin(), found.end());
  return found;
}

Image read_image(const std::string& path) {
  const Bytes file = open_bytes(path);
  if (file.size() > kMostBytes)
    fail(ORR_INVALID, "{}: {} bytes are more than an image has; take the file away", path,
         file.size());
  std::vector<std::byte> bytes(file.size());
  file.read(bytes.data(), bytes.size(), 0);
  return decode_image(bytes, path);
}

class ImageDirectory : public Dataset {
 public:
  ImageDirectory(const std::string& directory, int64_t size, int32_t dtype) : size_(size) {
    fields_ = {{"x", {dtype, {3, size, size}}}, {"y", {ORR_I32, {}}}};
    for (const fs::path& folder :
         entries(directory, [](const auto& entry) { return entry.is_directory(); })) {
      for (const fs::path& file :
           entries(folder, [](const auto& entry) { return is_image(entry.path()); }))
        files_.push_back({file.string(), static_cast<int32_t>(classes_.size())});
      classes_.push_back(folder.filename().string());
    }
    if (files_.empty())
      fail(ORR_INVALID,
           "{}: no images: expected a directory for each class, with .png, .jpg or .jpeg files",
           directory);
    samples_ = static_cast<int64_t>(files_.size());
  }

  void read(std::span<const Pick> picks, std::span<std::byte* const> to) const override {
    const Type& type = fields_[0].sample;
    for (size_t i = 0; i < picks.size(); ++i) {
      const auto& [path, label] = files_[static_cast<size_t>(picks[i].sample)];
      if (to[0]) write_image(path, to[0] + i * type.bytes());
      if (to[1]) std::memcpy(to[1] + i * sizeof label, &label, sizeof label);
    }
  }

 private:
  // By channels.
  void write_image(const std::string& path, std::byte* to) const {
    const Image image = square(read_image(path), size_, path);
    const size_t pixels_of_channel = image.rgb.size() / 3;
    std::vector<std::byte> planes(image.rgb.size());
    for (size_t i = 0; i < image.rgb.size(); ++i)
      planes[i % 3 * pixels_of_channel + i / 3] = static_cast<std::byte>(image.rgb[i]);
    const int32_t dtype = fields_[0].sample.dtype;
    convert_elements(pixels({Stored::u8}, dtype), planes.data(), planes.size(), dtype, to, path);
  }

  struct File {
    std::string path;
    int32_t label;
  };
  int64_t size_;
  std::vector<File> files_;
};

}  // namespace

DatasetPtr image_directory(const std::string& directory, int64_t size, int32_t dtype) {
  if (size < 1 || size > kMostEdge)
    fail(ORR_INVALID, "images: size is {}: 1 to {} pixels", size, kMostEdge);
  return std::make_shared<ImageDirectory>(directory, size, dtype);
}

}  // namespace orrery
