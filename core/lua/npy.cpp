// SPDX-License-Identifier: Apache-2.0
//
// NumPy's file format: magic, version, a header that is a Python dictionary, raw data.
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "lua/host_tensor.h"

namespace orrery::lua {
namespace {

struct Descr {
  const char* text;
  int32_t dtype;
};
constexpr Descr kDescrs[] = {{"<f4", ORR_F32}, {"<f8", ORR_F64}, {"<f2", ORR_F16}, {"<i4", ORR_I32},
                             {"<i8", ORR_I64}, {"|u1", ORR_U8},  {"|b1", ORR_BOOL}};

// The text after "'key':" in the header.
std::string field(const std::string& header, const std::string& key, const std::string& path) {
  const size_t at = header.find("'" + key + "'");
  const size_t colon = at == std::string::npos ? at : header.find(':', at);
  if (colon == std::string::npos) fail(ORR_INVALID, "{}: the .npy header lacks '{}'", path, key);
  const size_t begin = header.find_first_not_of(' ', colon + 1);
  return begin == std::string::npos ? "" : header.substr(begin);
}

int32_t parse_dtype(const std::string& header, const std::string& path) {
  const std::string text = field(header, "descr", path);
  for (const Descr& descr : kDescrs) {
    if (text.compare(1, 3, descr.text) == 0) return descr.dtype;
  }
  fail(ORR_INVALID, "{}: element type {} is not supported: save it as f4, f8, f2, i4, i8, u1 or b1",
       path, text.substr(0, text.find(',')));
}

Dims parse_shape(const std::string& header, const std::string& path) {
  const std::string text = field(header, "shape", path);
  Dims dims;
  for (size_t at = 1; at < text.size() && text[at] != ')';) {
    size_t used = 0;
    if (std::isdigit(static_cast<unsigned char>(text[at]))) {
      dims.push_back(std::stoll(text.substr(at), &used));
    }
    at += used ? used : 1;
  }
  return dims;
}

std::string read_header(std::ifstream& file, const std::string& path) {
  char start[8] = {};
  file.read(start, 8);
  if (!file || std::memcmp(start, "\x93NUMPY", 6) != 0) {
    fail(ORR_INVALID, "{}: not a .npy file (its first bytes are not \\x93NUMPY)", path);
  }
  uint32_t length = 0;
  file.read(reinterpret_cast<char*>(&length), start[6] == 1 ? 2 : 4);
  std::string header(file && length < (1u << 20) ? length : 0, ' ');
  file.read(header.data(), static_cast<std::streamsize>(header.size()));
  if (!file || header.empty()) fail(ORR_INVALID, "{}: the .npy header is cut short", path);
  return header;
}

}  // namespace

HostTensor load_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(ORR_INVALID, "{}: cannot open: {}", path, std::strerror(errno));
  const std::string header = read_header(file, path);
  if (field(header, "fortran_order", path).compare(0, 4, "True") == 0) {
    fail(ORR_INVALID, "{}: the array is in Fortran order; save numpy.ascontiguousarray(x)", path);
  }
  HostTensor tensor = HostTensor::make({parse_dtype(header, path), parse_shape(header, path)});
  const auto bytes = static_cast<std::streamsize>(tensor.type.bytes());
  file.read(reinterpret_cast<char*>(tensor.bytes->data()), bytes);
  if (file.gcount() != bytes) {
    fail(ORR_INVALID, "{}: {} of {} data bytes are there: the file is cut short", path,
         file.gcount(), bytes);
  }
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
