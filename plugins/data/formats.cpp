// SPDX-License-Identifier: Apache-2.0
#include "formats.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "refuse.h"

namespace data {
namespace {

struct Format {
  std::string_view bytes;
  const char* name;
  size_t at = 0;
};
constexpr size_t kFirst = 262;  // all of them are among the first
using namespace std::string_view_literals;
constexpr Format kFormats[] = {{"\x93NUMPY"sv, "a .npy file"},
                               {"PK\x03\x04"sv, "a zip archive (.npz, .pt, .xlsx)"},
                               {"\x1f\x8b\x08\x00"sv, "packed by gzip, and not named .gz"},
                               {"\x1f\x8b\x08\x08"sv, "packed by gzip, and not named .gz"},
                               {"\x28\xb5\x2f\xfd"sv, "packed by zstd, and not named .zst"},
                               {"\xfd\x37zXZ\0"sv, "packed by xz"},
                               {"ARROW1\0\0"sv, "an Arrow file"},
                               {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
                               {"MMIDIDX\0\0"sv, "the index of a file of tokens"},
                               {"\x80\x02}q"sv, "a pickle of Python's"},
                               {"ustar"sv, "a tar archive", 257}};

// The length of a header that is JSON, and its begin.
bool is_safetensors(std::string_view first, uint64_t size) {
  uint64_t header = 0;
  if (first.size() < 10) return false;
  std::memcpy(&header, first.data(), sizeof header);
  return header >= 2 && header <= size - 8 && first[8] == '{' &&
         (first[9] == '"' || first[9] == '}');
}

// A text may begin so too.
bool is_parquet(std::string_view first, const Bytes& file) {
  std::string last(4, '\0');
  if (!first.starts_with("PAR1") || file.size() < 12) return false;
  file.read(last.data(), last.size(), file.size() - last.size());
  return last == "PAR1";
}

// Null if it is nothing known.
const char* format_of(const Bytes& file) {
  std::string first(std::min<uint64_t>(file.size(), kFirst), '\0');
  file.read(first.data(), first.size(), 0);
  for (const Format& format : kFormats)
    if (first.compare(std::min(format.at, first.size()), format.bytes.size(), format.bytes) == 0)
      return format.name;
  if (is_parquet(first, file)) return "a Parquet file";
  return is_safetensors(first, file.size()) ? "a safetensors file" : nullptr;
}

}  // namespace

void refuse_formats(const Bytes& file, const char* expected) {
  if (const char* format = format_of(file))
    refuse(file.label(), ": it is ", format, ", not ", expected);
}

}  // namespace data
