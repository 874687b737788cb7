// SPDX-License-Identifier: Apache-2.0
//
// A directory of images: in it a directory for each class, with PNG and JPEG files. A file is read
// when its sample is. The option `size` is the edge of the square that is cut out of each.
#include <cstring>
#include <orrery/sdk/data.hpp>

#include "../bytes.h"
#include "../refuse.h"
#include "folders.h"
#include "resize.h"

namespace data {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30;  // of a file

Image read_image(const std::string& path) {
  const BytesPtr file = Bytes::open(path);
  if (file->size() > kMostBytes)
    refuse(path, ": ", file->size(), " bytes are more than an image has; take the file away");
  return decode_image(file->all(), path);
}

void tell_left_out(const std::string& directory, const std::vector<std::string>& files) {
  if (files.empty()) return;
  const std::string line = directory + ": files that are left out, as they are no .png, .jpg or " +
                           ".jpeg in the folder of a class: " + std::to_string(files.size()) +
                           ", such as " + files[0];
  orr::host->log(ORR_LOG_WARN, line.c_str());
}

class Images : public orr::Dataset {
 public:
  Images(const std::string& directory, int64_t size) : size_(size) {
    fields = {{"x", {3, size, size}, "|u1", ORR_F32, true}, {"y", {}, "<i4", ORR_I32}};
    ImageFolders found = find_images(directory);
    tell_left_out(directory, found.left_out);
    classes = std::move(found.classes), files_ = std::move(found.files);
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
  int64_t size_;
  std::vector<ImageFile> files_;
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
