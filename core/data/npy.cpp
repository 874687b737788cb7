// SPDX-License-Identifier: Apache-2.0
//
// NumPy's file format: magic, version, a header that is a Python dictionary, raw data.
#include "data/npy.h"

#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.h"

namespace orrery {
namespace {

constexpr uint64_t kMostHeaderBytes = 1 << 20;

// The text after "'key':" in the header.
std::string_view field(std::string_view header, const std::string& key, const Bytes& file) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == header.npos ? at : header.find(':', at);
  if (colon == header.npos) fail(ORR_INVALID, "{}: the .npy header lacks '{}'", file.label(), key);
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == header.npos ? "" : header.substr(begin);
}

Elements parse_elements(std::string_view header, const Bytes& file) {
  const std::string_view text = field(header, "descr", file);
  const size_t end = text.find('\'', 1);
  if (text.starts_with('\'') && end != text.npos) {
    if (const auto elements = elements_by_numpy(text.substr(1, end - 1))) return *elements;
  }
  fail(ORR_INVALID,
       "{}: elements of type {} are not supported: save them as one of f2, f4, f8, "
       "i1..i8, u1..u8, b1 or bfloat16",
       file.label(), text.substr(0, std::min<size_t>(text.find(','), 40)));
}

// "(2, 3)", "(5,)" or "()".
Dims parse_shape(std::string_view header, const Bytes& file) {
  const std::string_view text = field(header, "shape", file);
  const auto refuse = [&](const char* why) {
    fail(ORR_INVALID, "{}: the shape {} {}; save the array again", file.label(),
         text.substr(0, std::min<size_t>(text.find(')'), 80) + 1), why);
  };
  const char *at = text.data(), *end = at + text.size();
  const auto skip = [&](char c) { return at < end && *at == c ? (++at, true) : false; };
  Dims dims;
  if (!skip('(')) refuse("does not begin with '('");
  while (!skip(')')) {
    int64_t dim = 0;
    const auto [next, error] = std::from_chars(at, end, dim);
    if (error != std::errc() || dim < 0) refuse("has something else than whole numbers from 0");
    if (dims.size() == ORR_MAX_RANK) refuse("has too many dims");
    dims.push_back(dim), at = next;
    if (skip(',')) skip(' ');
  }
  return dims;
}

// The array, of elements of `bytes` bytes, must fit into `most` bytes.
void check_bytes(const Type& type, int64_t bytes, uint64_t most, const Bytes& file) {
  int64_t held = orr_dtype_bytes(type.dtype);
  bool over = false;
  for (int64_t dim : type.dims) {
    over |= __builtin_mul_overflow(bytes, dim, &bytes);
    over |= __builtin_mul_overflow(held, dim, &held);
  }
  if (over)
    fail(ORR_INVALID, "{}: the shape {} overflows 64 bits; save the array again", file.label(),
         to_string(type.dims));
  if (static_cast<uint64_t>(bytes) > most)
    fail(ORR_INVALID, "{}: {} of {} data bytes are there: the file is cut short", file.label(),
         most, bytes);
}

// Moves `at` behind what is read.
std::string read_some(const Bytes& file, uint64_t bytes, uint64_t& at) {
  if (bytes > kMostHeaderBytes || bytes > file.size() - at)
    fail(ORR_INVALID, "{}: the .npy header is cut short, or longer than {} bytes", file.label(),
         kMostHeaderBytes);
  std::string text(bytes, '\0');
  file.read(reinterpret_cast<std::byte*>(text.data()), bytes, at);
  at += bytes;
  return text;
}

std::string read_header(const Bytes& file, uint64_t& at) {
  const std::string start = read_some(file, std::min<uint64_t>(file.size(), 8), at);
  if (start.size() < 8 || start.compare(0, 6, "\x93NUMPY") != 0)
    fail(ORR_INVALID, "{}: not a .npy file (its first bytes are not \\x93NUMPY)", file.label());
  if (start[6] < 1 || start[6] > 3)
    fail(ORR_INVALID, "{}: version {} of .npy is not known; save it with numpy.save", file.label(),
         static_cast<int>(start[6]));
  const std::string size = read_some(file, start[6] == 1 ? 2 : 4, at);
  uint32_t length = 0;
  std::memcpy(&length, size.data(), size.size());
  return read_some(file, length, at);
}

}  // namespace

NpyFile open_npy(const std::string& path) {
  const Bytes file = open_bytes(path);
  uint64_t at = 0;
  const std::string header = read_header(file, at);
  if (field(header, "fortran_order", file).starts_with("True"))
    fail(ORR_INVALID, "{}: the array is in Fortran order; save numpy.ascontiguousarray(x)", path);
  const Elements elements = parse_elements(header, file);
  const StoredKind& kind = stored_kind(elements.kind);
  const Type type = {kind.dtype, parse_shape(header, file)};
  check_bytes(type, kind.bytes, file.size() - at, file);
  return {file, type, elements, at};
}

HostTensor load_npy(const std::string& path) {
  const NpyFile npy = open_npy(path);
  HostTensor tensor = HostTensor::make(npy.type);
  const Columns all({{{"", npy.type}, npy.bytes, npy.elements, npy.offset, 0}}, 1);
  const Pick first{0};
  std::byte* const to[] = {tensor.data<std::byte>()};
  all.read({&first, 1}, to);
  return tensor;
}

void save_npy(const std::string& path, const HostTensor& tensor) {
  const StoredKind& kind = stored_kind(stored_as(tensor.type.dtype));
  if (kind.kind == Stored::bf16) fail(ORR_INVALID, "{}: .npy has no bf16; cast to f32 first", path);
  std::string shape;
  for (int64_t dim : tensor.type.dims) shape += fmt::format("{}, ", dim);
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                   kind.bytes == 1 ? '|' : '<', kind.numpy, shape);
  header.resize((header.size() + 10 + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  const auto length = static_cast<uint16_t>(header.size());
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  file.write(reinterpret_cast<const char*>(&length), 2);
  file << header;
  file.write(reinterpret_cast<const char*>(tensor.bytes->data()),
             static_cast<std::streamsize>(tensor.type.bytes()));
  file.flush();
  if (!file) fail(ORR_FAILED, "{}: cannot write: {}", path, std::strerror(errno));
}

}  // namespace orrery
