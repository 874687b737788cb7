// SPDX-License-Identifier: Apache-2.0
#include "formats.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace data {
namespace {

struct Format {
  std::string_view begin;
  const char* name;
};
using namespace std::string_view_literals;
constexpr Format kFormats[] = {{"\x93NUMPY"sv, "a .npy file"},
                               {"PK\x03\x04"sv, "a zip archive (.npz, .pt)"},
                               {"\x1f\x8b\x08\x00"sv, "packed by gzip, and not named .gz"},
                               {"\x1f\x8b\x08\x08"sv, "packed by gzip, and not named .gz"},
                               {"\x28\xb5\x2f\xfd"sv, "packed by zstd"},
                               {"\xfd\x37zXZ\0"sv, "packed by xz"},
                               {"PAR1"sv, "a Parquet file"},
                               {"ARROW1\0\0"sv, "an Arrow file"},
                               {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
                               {"MMIDIDX\0\0"sv, "the index of a file of tokens"}};

// The length of a header that is JSON, and its begin.
bool is_safetensors(std::string_view first, uint64_t size) {
  uint64_t header = 0;
  if (first.size() < 10) return false;
  std::memcpy(&header, first.data(), sizeof header);
  return header >= 2 && header <= size - 8 && first[8] == '{' &&
         (first[9] == '"' || first[9] == '}');
}

}  // namespace

const char* format_of(const Bytes& file) {
  std::string first(std::min<uint64_t>(file.size(), 16), '\0');
  file.read(first.data(), first.size(), 0);
  for (const Format& format : kFormats)
    if (first.starts_with(format.begin)) return format.name;
  return is_safetensors(first, file.size()) ? "a safetensors file" : nullptr;
}

}  // namespace data
