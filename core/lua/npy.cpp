// SPDX-License-Identifier: Apache-2.0
//
// NumPy's file format: magic, version, a header that is a Python dictionary, raw data.
#include <fcntl.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.h"
#include "lua/host_tensor.h"
#include "store/file.h"

namespace orrery::lua {
namespace {

struct Descr {
  const char* text;
  int32_t dtype;
};
constexpr uint64_t kMostHeaderBytes = 1 << 20;
constexpr Descr kDescrs[] = {{"<f4", ORR_F32}, {"<f8", ORR_F64}, {"<f2", ORR_F16}, {"<i4", ORR_I32},
                             {"<i8", ORR_I64}, {"|u1", ORR_U8},  {"|b1", ORR_BOOL}};

// The text after "'key':" in the header.
std::string_view field(std::string_view header, const std::string& key, const File& file) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == header.npos ? at : header.find(':', at);
  if (colon == header.npos) fail(ORR_INVALID, "{}: the .npy header lacks '{}'", file.label(), key);
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == header.npos ? "" : header.substr(begin);
}

int32_t parse_dtype(std::string_view header, const File& file) {
  const std::string_view text = field(header, "descr", file);
  for (const Descr& descr : kDescrs)
    if (text.size() > 3 && text.substr(1, 3) == descr.text) return descr.dtype;
  fail(ORR_INVALID, "{}: element type {} is not supported: save it as f4, f8, f2, i4, i8, u1 or b1",
       file.label(), text.substr(0, std::min<size_t>(text.find(','), 40)));
}

// "(2, 3)", "(5,)" or "()".
Dims parse_shape(std::string_view header, const File& file) {
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

// The array must fit into `most` bytes.
void check_bytes(const Type& type, uint64_t most, const File& file) {
  int64_t bytes = orr_dtype_bytes(type.dtype);
  bool over = false;
  for (int64_t dim : type.dims) over |= __builtin_mul_overflow(bytes, dim, &bytes);
  if (over)
    fail(ORR_INVALID, "{}: the shape {} overflows 64 bits; save the array again", file.label(),
         to_string(type.dims));
  if (static_cast<uint64_t>(bytes) > most)
    fail(ORR_INVALID, "{}: {} of {} data bytes are there: the file is cut short", file.label(),
         most, bytes);
}

// Moves `at` behind what is read.
std::string read_some(const File& file, uint64_t bytes, uint64_t& at) {
  if (bytes > kMostHeaderBytes || bytes > file.size() - at)
    fail(ORR_INVALID, "{}: the .npy header is cut short, or longer than {} bytes", file.label(),
         kMostHeaderBytes);
  std::string text(bytes, '\0');
  file.read(text.data(), bytes, at);
  at += bytes;
  return text;
}

std::string read_header(const File& file, uint64_t& at) {
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

HostTensor load_npy(const std::string& path) {
  const File file = File::open(AT_FDCWD, path, path, true);
  uint64_t at = 0;
  const std::string header = read_header(file, at);
  if (field(header, "fortran_order", file).starts_with("True"))
    fail(ORR_INVALID, "{}: the array is in Fortran order; save numpy.ascontiguousarray(x)", path);
  const Type type = {parse_dtype(header, file), parse_shape(header, file)};
  check_bytes(type, file.size() - at, file);
  HostTensor tensor = HostTensor::make(type);
  file.read(tensor.bytes->data(), tensor.bytes->size(), at);
  return tensor;
}

void save_npy(const std::string& path, const HostTensor& tensor) {
  const char* descr = nullptr;
  for (const Descr& row : kDescrs) {
    if (row.dtype == tensor.type.dtype) descr = row.text;
  }
  if (!descr)
    fail(ORR_INVALID, "{}: .npy has no {}; cast to f32 first", path, dtype_name(tensor.type.dtype));
  std::string shape;
  for (int64_t dim : tensor.type.dims) shape += fmt::format("{}, ", dim);
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
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

}  // namespace orrery::lua
