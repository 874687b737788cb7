// SPDX-License-Identifier: Apache-2.0
//
// NumPy's file format: magic, version, a header that is a Python dictionary, raw data. The option
// `field` names the field, of which the first dim of the array counts the samples; with `whole` = 1
// there is one sample, all of the array. It is read a sample at a time, but from memory if it is in
// Fortran order, in which NumPy saves transposed arrays: a sample's elements are far apart there.
#include <algorithm>
#include <cstring>

#include "npy_header.h"
#include "refuse.h"
#include "rows.h"

namespace data {
namespace {

constexpr uint64_t kElementsAtOnce = 1 << 16;  // of an array in columns

std::string text_of(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

// The bytes of the elements of these dims, as the file holds them and as tensors do, which have at
// most 8 for each. Throws if they are not in the file.
uint64_t checked_bytes(const NpyArray& array) {
  int64_t bytes = array.element_bytes, held = 8;
  bool over = false;
  for (int64_t dim : array.dims) {
    over |= __builtin_mul_overflow(bytes, dim, &bytes);
    over |= __builtin_mul_overflow(held, dim, &held);
  }
  const std::string& label = array.bytes->label();
  if (over)
    refuse(label, ": the shape ", text_of(array.dims), " overflows 64 bits; save the array again");
  const uint64_t most = array.bytes->size() - array.offset;
  if (static_cast<uint64_t>(bytes) > most)
    refuse(label, ": ", most, " of ", bytes, " data bytes are there: the file is cut short");
  return static_cast<uint64_t>(bytes);
}

// The `bytes` of an array in columns, in rows. The file is read from its begin to its end; `place`
// is where the element at `index` goes.
std::vector<std::byte> in_rows(const NpyArray& array, uint64_t bytes) {
  check_memory(bytes, array.bytes->label() +
                          ", which is in Fortran order and therefore read into memory (save "
                          "numpy.ascontiguousarray(x) to have it read a sample at a time)");
  const auto size = static_cast<size_t>(array.element_bytes);
  std::vector<std::byte> rows(bytes), some(std::min<uint64_t>(bytes, kElementsAtOnce * size));
  std::vector<size_t> steps(array.dims.size(), size), index(array.dims.size());
  for (size_t d = steps.size(); d-- > 1;)
    steps[d - 1] = steps[d] * static_cast<size_t>(array.dims[d]);
  size_t place = 0;
  for (uint64_t at = 0; at < bytes; at += some.size()) {
    some.resize(std::min<uint64_t>(some.size(), bytes - at));
    array.bytes->read(some.data(), some.size(), array.offset + at);
    for (size_t from = 0; from < some.size(); from += size) {
      std::memcpy(rows.data() + place, some.data() + from, size);
      for (size_t d = 0; d < index.size(); index[d++] = 0) {
        place += steps[d];
        if (++index[d] < static_cast<size_t>(array.dims[d])) break;
        place -= steps[d] * index[d];
      }
    }
  }
  return rows;
}

std::unique_ptr<orr::Dataset> open(const std::string& path, const orr::DataOptions& options) {
  NpyArray array = open_npy(path);
  uint64_t bytes = checked_bytes(array);
  if (array.in_columns) {
    array.bytes = std::make_shared<Bytes>(in_rows(array, bytes), path);
    array.offset = 0;
  }
  int64_t samples = 1;
  if (!options.integer("whole", 0)) {
    if (array.dims.empty() || array.dims[0] == 0)
      refuse(path, ": the array is ", text_of(array.dims),
             ": its first dim counts the samples and is at least 1");
    samples = array.dims[0];
    bytes /= static_cast<uint64_t>(samples);
    array.dims.erase(array.dims.begin());
  }
  Column column{{options.text("field", "x"), array.dims, array.elements},
                array.bytes,
                array.offset,
                bytes,
                bytes};
  return std::make_unique<Rows>(std::vector{std::move(column)}, samples);
}

}  // namespace
}  // namespace data

ORR_PLUGIN(ORR_KIND_DATA, "npy", "0.1.0", "Arrays of NumPy, .npy", orr::Reader<data::open>::entry,
           1, {{"data", 1, 1}})
