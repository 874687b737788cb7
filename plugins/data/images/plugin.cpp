// SPDX-License-Identifier: Apache-2.0
//
// Images as files: of a directory that has one for each class, or, with the option `column`, those
// that this column of a table in CSV names, in `folder` and without `ending`, with other columns as
// `fields` (table_field.h). A file is read when
// its sample is. The option `size` is the edge of the square that is cut out of each.
#include <cstring>
#include <filesystem>
#include <orrery/sdk/data.hpp>

#include "../bytes.h"
#include "../refuse.h"
#include "folders.h"
#include "listed.h"
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
  const std::string line =
      directory + ": files that are left out, as they do not end in " + image_endings() +
      ", or are in no folder of a class: " + std::to_string(files.size()) + ", such as " + files[0];
  orr::host->log(ORR_LOG_WARN, line.c_str());
}

// Labels of folders as a column y.
std::unique_ptr<Rows> labels_of(const ImageFolders& found) {
  std::vector<std::byte> labels(found.files.size() * sizeof(int32_t));
  for (size_t i = 0; i < found.files.size(); ++i)
    std::memcpy(labels.data() + i * sizeof(int32_t), &found.files[i].label, sizeof(int32_t));
  const auto bytes = std::make_shared<Bytes>(std::move(labels), "labels");
  const Column y{{"y", {}, "<i4", ORR_I32}, bytes, 0, sizeof(int32_t), sizeof(int32_t)};
  auto rows = std::make_unique<Rows>(std::vector{y}, static_cast<int64_t>(found.files.size()));
  rows->classes = found.classes;
  return rows;
}

// Images as x, and columns.
class Images : public orr::Dataset {
 public:
  Images(std::vector<std::string> files, std::unique_ptr<Rows> columns, int64_t size)
      : size_(size), files_(std::move(files)), columns_(std::move(columns)) {
    fields = {{"x", {3, size, size}, "|u1", ORR_F32, true}};
    fields.insert(fields.end(), columns_->fields.begin(), columns_->fields.end());
    samples = columns_->samples, classes = columns_->classes;
  }

  void read(const int64_t* wanted, int64_t n, void* const* to) const override {
    auto* x = static_cast<uint8_t*>(to[0]);
    for (int64_t i = 0; x && i < n; ++i) {
      const std::string& path = files_[static_cast<size_t>(wanted[i])];
      write_planes(square(read_image(path), size_, path), x + i * 3 * size_ * size_);
    }
    columns_->read(wanted, n, to + 1);
  }

 private:
  int64_t size_;
  std::vector<std::string> files_;
  std::unique_ptr<Rows> columns_;
};

std::unique_ptr<orr::Dataset> open_folders(const std::string& path, int64_t size) {
  const ImageFolders found = find_images(path);
  tell_left_out(path, found.left_out);
  std::vector<std::string> files;
  for (const ImageFile& file : found.files) files.push_back(file.path);
  return std::make_unique<Images>(std::move(files), labels_of(found), size);
}

std::unique_ptr<orr::Dataset> open_list(const std::string& path, const orr::DataOptions& options,
                                        int64_t size) {
  const std::string beside = std::filesystem::path(path).parent_path().string();
  const ImageList list{options.text("column", ""), options.text("folder", beside.c_str()),
                       options.text("ending", "")};
  std::vector<TableField> fields;
  if (options.has_text("fields.1.name")) fields = table_fields(options, "images", path);
  ListedImages found = listed_images(path, list, fields);
  return std::make_unique<Images>(std::move(found.paths), std::move(found.columns), size);
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  const int64_t size = options.integer("size", 0);
  if (size < 1 || size > kMostEdge)
    refuse("images: size is ", size, ": 1 to ", kMostEdge, " pixels");
  return options.has_text("column") ? open_list(path, options, size) : open_folders(path, size);
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "images", "0.1.0",
           "Images in a directory for each class, or listed by a table",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
