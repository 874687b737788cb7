// SPDX-License-Identifier: Apache-2.0
//
// NumPy's file format: magic, version, a header that is a Python dictionary, raw data. The option
// `field` names the field, of which the first dim of the array counts the samples; with `whole` = 1
// there is one sample, all of the array. It is read a sample at a time, but from memory if it is in
// Fortran order, in which NumPy saves transposed arrays: a sample's elements are far apart there.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "refuse.h"
#include "rows.h"

namespace data {
namespace {

constexpr uint64_t kMostHeaderBytes = 1 << 20;
constexpr uint64_t kElementsAtOnce = 1 << 16;  // of an array in columns

struct Array {
  BytesPtr bytes;
  std::string elements;  // as NumPy names them
  std::vector<int64_t> dims;
  uint64_t offset = 0;      // of the first element
  bool in_columns = false;  // Fortran order: the first dim's index counts fastest
};

// The text after "'key':" in the header.
std::string_view value_of(std::string_view header, const std::string& key, const Bytes& file) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == header.npos ? at : header.find(':', at);
  if (colon == header.npos) refuse(file.label(), ": the .npy header lacks '", key, "'");
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == header.npos ? "" : header.substr(begin);
}

// The bytes of an element; 0 for one that no tensor holds. ml_dtypes writes bfloat16 as "V2".
int64_t element_bytes(std::string_view elements) {
  if (elements.find_first_of("<>|=") == 0) elements.remove_prefix(1);
  if (elements == "bfloat16") return 2;
  for (const char* known :
       {"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1", "V2"})
    if (elements == known) return elements[1] - '0';
  return 0;
}

std::string elements_in(std::string_view header, const Bytes& file) {
  const std::string_view text = value_of(header, "descr", file);
  const size_t end = text.find('\'', 1);
  if (text.starts_with('\'') && end != text.npos && element_bytes(text.substr(1, end - 1)))
    return std::string(text.substr(1, end - 1));
  refuse(file.label(), ": elements of type ", text.substr(0, std::min<size_t>(text.find(','), 40)),
         " are not supported: save them as one of f2, f4, f8, i1..i8, u1..u8, b1 or bfloat16");
}

// "(2, 3)", "(5,)" or "()".
std::vector<int64_t> dims_in(std::string_view header, const Bytes& file) {
  const std::string_view text = value_of(header, "shape", file);
  const auto fail = [&](const char* why) {
    refuse(file.label(), ": the shape ", text.substr(0, std::min<size_t>(text.find(')'), 80) + 1),
           " ", why, "; save the array again");
  };
  const char *at = text.data(), *end = at + text.size();
  const auto skip = [&](char c) { return at < end && *at == c ? (++at, true) : false; };
  std::vector<int64_t> dims;
  if (!skip('(')) fail("does not begin with '('");
  while (!skip(')')) {
    int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 0) fail("has something else than whole numbers from 0");
    if (dims.size() == ORR_MAX_RANK) fail("has too many dims");
    dims.push_back(dim), at = next;
    if (skip(',')) skip(' ');
  }
  return dims;
}

std::string text_of(const std::vector<int64_t>& dims) {
  std::string text;
  for (int64_t dim : dims) text += (text.empty() ? "" : ",") + std::to_string(dim);
  return "[" + text + "]";
}

// The bytes of the elements of these dims, as the file holds them and as tensors do, which have at
// most 8 for each. Throws if they are not in the file.
uint64_t checked_bytes(const Array& array) {
  int64_t bytes = element_bytes(array.elements), held = 8;
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

// Moves `at` behind what is read.
std::string read_some(const Bytes& file, uint64_t bytes, uint64_t& at) {
  if (bytes > kMostHeaderBytes || bytes > file.size() - at)
    refuse(file.label(), ": the .npy header is cut short, or longer than ", kMostHeaderBytes,
           " bytes");
  std::string text(bytes, '\0');
  file.read(text.data(), bytes, at);
  at += bytes;
  return text;
}

std::string read_header(const Bytes& file, uint64_t& at) {
  const std::string start = read_some(file, std::min<uint64_t>(file.size(), 8), at);
  if (start.size() < 8 || start.compare(0, 6, "\x93NUMPY") != 0)
    refuse(file.label(), ": not a .npy file (its first bytes are not \\x93NUMPY)");
  if (start[6] < 1 || start[6] > 3)
    refuse(file.label(), ": version ", int{start[6]},
           " of .npy is not known; save it with numpy.save");
  const std::string size = read_some(file, start[6] == 1 ? 2 : 4, at);
  uint32_t length = 0;
  std::memcpy(&length, size.data(), size.size());
  return read_some(file, length, at);
}

Array open_array(const std::string& path) {
  Array array{Bytes::open(path), "", {}};
  const std::string header = read_header(*array.bytes, array.offset);
  array.in_columns = value_of(header, "fortran_order", *array.bytes).starts_with("True");
  array.elements = elements_in(header, *array.bytes);
  array.dims = dims_in(header, *array.bytes);
  return array;
}

// The `bytes` of an array in columns, in rows. The file is read from its begin to its end; `place`
// is where the element at `index` goes.
std::vector<std::byte> in_rows(const Array& array, uint64_t bytes) {
  check_memory(bytes, array.bytes->label() +
                          ", which is in Fortran order and therefore read into memory (save "
                          "numpy.ascontiguousarray(x) to have it read a sample at a time)");
  const auto size = static_cast<size_t>(element_bytes(array.elements));
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
  Array array = open_array(path);
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
