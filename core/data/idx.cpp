// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include <array>

#include "base/error.h"
#include "data/columns.h"
#include "data/pixels.h"

namespace orrery {
namespace {

struct IdxFile {
  Bytes bytes;
  Elements elements;
  Dims dims;
  uint64_t offset;

  std::string shape() const { return to_string(dims); }
};

Elements elements_of(uint8_t code, const std::string& path) {
  switch (code) {
    case 0x08: return {Stored::u8, true};
    case 0x09: return {Stored::i8, true};
    case 0x0b: return {Stored::i16, true};
    case 0x0c: return {Stored::i32, true};
    case 0x0d: return {Stored::f32, true};
    case 0x0e: return {Stored::f64, true};
  }
  fail(ORR_INVALID, "{}: element code {} is none of idx (8, 9, 11 to 14); restore the file", path,
       code);
}

// REQUIRES: the file has `rank` dims.
Dims dims_of(const Bytes& bytes, uint8_t rank) {
  std::vector<std::byte> raw(rank * size_t{4});
  bytes.read(raw.data(), raw.size(), 4);
  Dims dims(rank);
  convert_elements({Stored::u32, true}, raw.data(), rank, ORR_I64,
                   reinterpret_cast<std::byte*>(dims.data()), bytes.label());
  return dims;
}

IdxFile open_idx(const std::string& path) {
  const Bytes bytes = open_bytes(path);
  std::array<uint8_t, 4> magic{};
  if (bytes.size() >= 4) bytes.read(reinterpret_cast<std::byte*>(magic.data()), 4, 0);
  if (magic[0] == 0x1f && magic[1] == 0x8b)
    fail(ORR_INVALID, "{}: the file is compressed; unpack it with gunzip first", path);
  if (magic[0] || magic[1] || magic[3] == 0 || magic[3] > ORR_MAX_RANK)
    fail(ORR_INVALID, "{}: not an idx file (it does not begin with 0, 0, a type, 1 to {} dims)",
         path, static_cast<int>(ORR_MAX_RANK));
  const uint64_t offset = 4 + 4 * uint64_t{magic[3]};
  if (bytes.size() < offset)
    fail(ORR_INVALID, "{}: {} bytes do not hold the dims: the file is cut short", path,
         bytes.size());
  IdxFile file{bytes, elements_of(magic[2], path), dims_of(bytes, magic[3]), offset};
  int64_t size = stored_kind(file.elements.kind).bytes;
  bool over = false;
  for (int64_t dim : file.dims) over |= __builtin_mul_overflow(size, dim, &size);
  if (size == 0)
    fail(ORR_INVALID, "{}: the array is {}: there is nothing in it", path, file.shape());
  if (over || static_cast<uint64_t>(size) != bytes.size() - offset)
    fail(ORR_INVALID,
         "{}: {} bytes of elements are not those of {}: the file is cut short or "
         "altered; restore it",
         path, bytes.size() - offset, file.shape());
  return file;
}

}  // namespace

DatasetPtr idx_files(const std::string& images, const std::string& labels, int32_t dtype) {
  const IdxFile x = open_idx(images), y = open_idx(labels);
  if (x.dims.size() != 3 && x.dims.size() != 4)
    fail(ORR_INVALID,
         "{}: the array is {}: images are [N,H,W] or [N,C,H,W]; are the two files "
         "exchanged?",
         images, x.shape());
  if (y.dims.size() != 1)
    fail(ORR_INVALID, "{}: the array is {}: labels are [N]; are the two files exchanged?", labels,
         y.shape());
  if (x.dims[0] != y.dims[0])
    fail(ORR_INVALID, "{} has {} images, {} has {} labels: give the two files of one set", images,
         x.dims[0], labels, y.dims[0]);
  Dims image(x.dims.begin() + 1, x.dims.end());
  if (image.size() == 2) image.insert(image.begin(), 1);
  const Type type{dtype, image};
  const auto bytes = [&](const IdxFile& file, int64_t elements) {
    return static_cast<uint64_t>(stored_kind(file.elements.kind).bytes * elements);
  };
  return std::make_shared<Columns>(
      std::vector<Column>{
          {{"x", type}, x.bytes, pixels(x.elements, dtype), x.offset, bytes(x, type.elements())},
          {{"y", {ORR_I32, {}}}, y.bytes, y.elements, y.offset, bytes(y, 1)}},
      x.dims[0]);
}

}  // namespace orrery
