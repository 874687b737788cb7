// SPDX-License-Identifier: Apache-2.0
//
// WebDataset's shards. A field is the files of an ending: images (kImageEndings), whole numbers
// (cls, cls2, index, inx, id), arrays (npy), and of any other ending bytes, with zeros up to the
// longest. Options: `fields`, a list of {name, columns}, whose columns are endings; `more`, the
// shards that follow the first; `size`, the edge of images.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <orrery/sdk/data.hpp>
#include <span>

#include "../images/resize.h"
#include "../npy_header.h"
#include "../refuse.h"
#include "shards.h"

namespace data {
namespace {

struct AskedEndings {
  std::string name;
  std::vector<std::string> endings;
};

constexpr std::array<std::string_view, 5> kNumberEndings = {"cls", "cls2", "index", "inx", "id"};
constexpr std::array<std::string_view, 1> kArrayEndings = {"npy"};
constexpr std::array<std::string_view, 5> kPickledEndings = {"pyd", "pkl", "pickle", "pth", "pt"};

// Whether all endings, of "seg.npy" the last part, are among these.
bool all_among(const std::vector<std::string>& endings, std::span<const std::string_view> of) {
  return std::all_of(endings.begin(), endings.end(), [&](const std::string& each) {
    return std::find(of.begin(), of.end(), each.substr(each.rfind('.') + 1)) != of.end();
  });
}

// Writes a field of a sample.
class TarField {
 public:
  TarField(const AskedEndings& asked, const Shards& shards, size_t number, int64_t size)
      : shards_(shards), number_(number), size_(size) {
    field.name = asked.name;
    if (all_among(asked.endings, kImageEndings))
      be_image();
    else if (all_among(asked.endings, kNumberEndings))
      be_number();
    else if (all_among(asked.endings, kArrayEndings))
      be_array();
    else
      be_bytes();
  }

  size_t bytes() const { return bytes_; }
  void write(size_t sample, std::byte* to) const {
    const BytesPtr file = shards_.read(sample, number_);
    switch (what_) {
      case What::image:
        return write_planes(square(decode_image(file->all(), file->label()), size_, file->label()),
                            reinterpret_cast<uint8_t*>(to));
      case What::number: return write_number(*file, to);
      case What::array: return write_array(file, to);
      case What::bytes:
        file->read(to, file->size(), 0);
        std::memset(to + file->size(), 0, bytes_ - file->size());
    }
  }

  orr::DataField field;

 private:
  enum class What { image, number, array, bytes };

  void be_image() {
    if (size_ < 1 || size_ > kMostEdge)
      refuse("webdataset: '", field.name, "' is of images: give size = 224, or another edge up to ",
             kMostEdge);
    what_ = What::image;
    field = {field.name, {3, size_, size_}, "|u1", ORR_F32, true};
    bytes_ = static_cast<size_t>(3 * size_ * size_);
  }

  void be_number() {
    what_ = What::number;
    field = {field.name, {}, "<i4"};
    bytes_ = sizeof(int32_t);
  }

  // As the first sample is.
  void be_array() {
    what_ = What::array;
    const NpyArray first = npy_in(shards_.read(0, number_));
    field = {field.name, first.dims, first.elements};
    bytes_ = data_bytes(first);
  }

  void be_bytes() {
    what_ = What::bytes;
    bytes_ = 1;
    for (size_t i = 0; i < shards_.samples(); ++i)
      bytes_ = std::max<size_t>(bytes_, shards_.member(i, number_).size);
    field = {field.name, {static_cast<int64_t>(bytes_)}, "|u1"};
  }

  static size_t data_bytes(const NpyArray& array) {
    int64_t bytes = array.element_bytes;
    bool over = false;
    for (const int64_t dim : array.dims) over |= __builtin_mul_overflow(bytes, dim, &bytes);
    if (over || static_cast<uint64_t>(bytes) != array.bytes->size() - array.offset)
      refuse(array.bytes->label(), ": the array is cut short, or its header altered");
    if (array.in_columns)
      refuse(array.bytes->label(),
             ": it is in Fortran order; save numpy.ascontiguousarray(x) instead");
    return static_cast<size_t>(bytes);
  }

  void write_number(const Bytes& file, std::byte* to) const {
    std::string text(std::min<uint64_t>(file.size(), 64), '\0');
    file.read(text.data(), text.size(), 0);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    int32_t value = 0;
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || at != end)
      refuse(file.label(), ": it has '", text.substr(0, 40),
             "', a whole number of 32 bits expected");
    std::memcpy(to, &value, sizeof value);
  }

  void write_array(const BytesPtr& file, std::byte* to) const {
    const NpyArray array = npy_in(file);
    if (array.dims != field.dims || array.elements != field.elements)
      refuse(file->label(),
             ": the array has other dims or elements than that of the first sample, ",
             shards_.label(0, number_));
    file->read(to, data_bytes(array), array.offset);
  }

  const Shards& shards_;
  size_t number_;
  int64_t size_;
  What what_ = What::bytes;
  size_t bytes_ = 0;
};

class WebDataset : public orr::Dataset {
 public:
  WebDataset(const std::vector<std::string>& paths, const std::vector<AskedEndings>& asked,
             int64_t size)
      : shards_(paths, endings_of(asked)) {
    for (size_t f = 0; f < asked.size(); ++f) {
      made_.emplace_back(asked[f], shards_, f, size);
      fields.push_back(made_.back().field);
    }
    samples = static_cast<int64_t>(shards_.samples());
  }

  void read(const int64_t* wanted, int64_t n, void* const* to) const override {
    for (size_t f = 0; f < made_.size(); ++f) {
      auto* at = static_cast<std::byte*>(to[f]);
      for (int64_t i = 0; at && i < n; ++i, at += made_[f].bytes())
        made_[f].write(static_cast<size_t>(wanted[i]), at);
    }
  }

 private:
  static std::vector<std::vector<std::string>> endings_of(const std::vector<AskedEndings>& asked) {
    std::vector<std::vector<std::string>> all;
    for (const AskedEndings& each : asked) all.push_back(each.endings);
    return all;
  }

  Shards shards_;
  std::vector<TarField> made_;
};

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  std::vector<AskedEndings> asked;
  for (int i = 1;; ++i) {
    const std::string at = "fields." + std::to_string(i) + ".";
    const std::string name = options.text(at + "name", "");
    if (name.empty()) break;
    asked.push_back({name, options.texts(at + "columns")});
    if (all_among(asked.back().endings, kPickledEndings))
      refuse(path, ": .", asked.back().endings[0],
             " is pickled by Python, which nothing here runs");
  }
  if (asked.empty()) refuse(path, ": no fields are asked for; write {x = 'jpg', y = 'cls'}");
  std::vector<std::string> paths = options.texts("more");
  paths.insert(paths.begin(), path);
  return std::make_unique<WebDataset>(paths, asked, options.integer("size", 0));
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "webdataset", "0.1.0", "WebDataset's shards, tar archives of samples",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
