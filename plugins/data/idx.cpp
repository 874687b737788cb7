// SPDX-License-Identifier: Apache-2.0
//
// MNIST's idx files: two zero bytes, the kind of the elements, the number of dims, the dims as
// big-endian 32-bit numbers, and the elements, big-endian. The path is that of the images, the
// option `labels` that of the labels; both may be packed by gzip or zstd.
#include <array>

#include "refuse.h"
#include "rows.h"

namespace data {
namespace {

struct Idx {
  BytesPtr bytes;
  std::string elements;  // as NumPy names them
  uint64_t element_bytes;
  std::vector<int64_t> dims;
  uint64_t offset;  // of the first element
};

std::string text_of(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

std::string elements_of(unsigned char code, const std::string& path) {
  switch (code) {
    case 0x08: return "|u1";
    case 0x09: return "|i1";
    case 0x0b: return ">i2";
    case 0x0c: return ">i4";
    case 0x0d: return ">f4";
    case 0x0e: return ">f8";
  }
  refuse(path, ": element code ", int{code}, " is none of idx (8, 9, 11 to 14); restore the file");
}

// REQUIRES: the file has `rank` dims.
std::vector<int64_t> dims_of(const Bytes& bytes, size_t rank) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < rank; ++i) {
    std::array<unsigned char, 4> raw;
    bytes.read(raw.data(), raw.size(), 4 + 4 * i);
    dims.push_back(int64_t{raw[0]} << 24 | raw[1] << 16 | raw[2] << 8 | raw[3]);
  }
  return dims;
}

// Throws unless the file has the elements that its dims say.
void check_size(const Idx& file, const std::string& path) {
  auto size = static_cast<int64_t>(file.element_bytes);
  bool over = false;
  for (int64_t dim : file.dims) over |= __builtin_mul_overflow(size, dim, &size);
  if (size == 0) refuse(path, ": the array is ", text_of(file.dims), ": there is nothing in it");
  const uint64_t held = file.bytes->size() - file.offset;
  if (over || static_cast<uint64_t>(size) != held)
    refuse(path, ": ", held, " bytes of elements are not those of ", text_of(file.dims),
           ": the file is cut short or altered; restore it");
}

Idx open_idx(const std::string& path) {
  const BytesPtr bytes = open_unpacked(path);
  std::array<unsigned char, 4> magic{};
  if (bytes->size() >= 4) bytes->read(magic.data(), 4, 0);
  if (magic[0] || magic[1] || magic[3] == 0 || magic[3] > ORR_MAX_RANK)
    refuse(path, ": not an idx file (it does not begin with 0, 0, a type, 1 to ", int{ORR_MAX_RANK},
           " dims)");
  const uint64_t offset = 4 + 4 * uint64_t{magic[3]};
  if (bytes->size() < offset)
    refuse(path, ": ", bytes->size(), " bytes do not hold the dims: the file is cut short");
  const std::string elements = elements_of(magic[2], path);
  const Idx file{bytes, elements, static_cast<uint64_t>(elements[2] - '0'),
                 dims_of(*bytes, magic[3]), offset};
  check_size(file, path);
  return file;
}

Column column_of(const std::string& name, const Idx& file, std::vector<int64_t> dims,
                 int32_t dtype) {
  uint64_t bytes = file.element_bytes;
  for (int64_t dim : dims) bytes *= static_cast<uint64_t>(dim);
  return {{name, std::move(dims), file.elements, dtype, name == "x"},
          file.bytes,
          file.offset,
          bytes,
          bytes};
}

std::unique_ptr<orr::Dataset> open(const std::string& images, const orr::DataOptions& options) {
  const std::string labels = options.text("labels", "");
  if (labels.empty()) refuse("idx: the option 'labels' is missing: the path of the labels");
  const Idx x = open_idx(images), y = open_idx(labels);
  if (x.dims.size() != 3 && x.dims.size() != 4)
    refuse(images, ": the array is ", text_of(x.dims),
           ": images are [N,H,W] or [N,C,H,W]; are the two files exchanged?");
  if (y.dims.size() != 1)
    refuse(labels, ": the array is ", text_of(y.dims),
           ": labels are [N]; are the two files exchanged?");
  if (x.dims[0] != y.dims[0])
    refuse(images, " has ", x.dims[0], " images, ", labels, " has ", y.dims[0],
           " labels: give the two files of one set");
  std::vector<int64_t> image(x.dims.begin() + 1, x.dims.end());
  if (image.size() == 2) image.insert(image.begin(), 1);
  return std::make_unique<Rows>(
      std::vector<Column>{column_of("x", x, image, ORR_F32), column_of("y", y, {}, ORR_I32)},
      x.dims[0]);
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "idx", "0.1.0", "MNIST's idx files, also packed by gzip or zstd",
           orr::Reader<data::open>::entry, 1, {{"data", 1, 1}})
