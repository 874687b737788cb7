// SPDX-License-Identifier: Apache-2.0
//
// A directory of images: in it a directory for each class, with PNG and JPEG files. A file is read
// when its sample is. The option `size` is the edge of the square that is cut out of each.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <orrery/sdk/data.hpp>

#include "../bytes.h"
#include "../refuse.h"
#include "resize.h"

namespace fs = std::filesystem;

namespace data {
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
  if (error) refuse(directory.string(), ": cannot be listed: ", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

Image read_image(const std::string& path) {
  const BytesPtr file = Bytes::open(path);
  if (file->size() > kMostBytes)
    refuse(path, ": ", file->size(), " bytes are more than an image has; take the file away");
  return decode_image(file->all(), path);
}

class Images : public orr::Dataset {
 public:
  Images(const std::string& directory, int64_t size) : size_(size) {
    fields = {{"x", {3, size, size}, "|u1", ORR_F32, true}, {"y", {}, "<i4", ORR_I32}};
    for (const fs::path& folder :
         entries(directory, [](const auto& entry) { return entry.is_directory(); })) {
      for (const fs::path& file :
           entries(folder, [](const auto& entry) { return is_image(entry.path()); }))
        files_.push_back({file.string(), static_cast<int32_t>(classes.size())});
      classes.push_back(folder.filename().string());
    }
    if (files_.empty())
      refuse(directory,
             ": no images: expected a directory for each class, with .png, .jpg or .jpeg files");
    samples = static_cast<int64_t>(files_.size());
  }

  void read(const int64_t* wanted, int64_t n, void* const* to) const override {
    auto *x = static_cast<uint8_t*>(to[0]), *y = static_cast<uint8_t*>(to[1]);
    for (int64_t i = 0; i < n; ++i) {
      const auto& [path, label] = files_[static_cast<size_t>(wanted[i])];
      if (x) write_planes(square(read_image(path), size_, path), x + i * 3 * size_ * size_);
      if (y) std::memcpy(y + static_cast<size_t>(i) * sizeof label, &label, sizeof label);
    }
  }

 private:
  // By channels.
  static void write_planes(const Image& image, uint8_t* to) {
    const size_t pixels = image.rgb.size() / 3;
    for (size_t i = 0; i < image.rgb.size(); ++i) to[i % 3 * pixels + i / 3] = image.rgb[i];
  }

  struct File {
    std::string path;
    int32_t label;
  };
  int64_t size_;
  std::vector<File> files_;
};

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const int64_t size = options.integer("size", 0);
  if (size < 1 || size > kMostEdge)
    refuse("images: size is ", size, ": 1 to ", kMostEdge, " pixels");
  return std::make_unique<Images>(path, size);
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "images", "0.1.0", "A directory of PNG and JPEG files for each class",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
