// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <cstring>
#include <string_view>

#include "../refuse.h"

namespace data {

namespace {

// Formats that files of these endings have at times.
struct Format {
  size_t at;
  std::string_view bytes;
  const char* name;
};
using namespace std::string_view_literals;
constexpr Format kFormats[] = {{0, "GIF8"sv, "GIF"},
                               {8, "WEBP"sv, "WebP"},
                               {0, "BM"sv, "BMP"},
                               {0, "II*\0"sv, "TIFF"},
                               {0, "MM\0*"sv, "TIFF"},
                               {4, "ftypavif"sv, "AVIF"},
                               {4, "ftyphei"sv, "HEIC"},
                               {4, "ftypmif1"sv, "HEIC"},
                               {0, "<"sv, "a page of a web server, or SVG"},
                               {0, "\0\0\0\0"sv, "zeros"}};

std::string format_of(std::string_view file) {
  if (file.empty()) return " (the file is empty)";
  for (const Format& format : kFormats)
    if (file.size() > format.at && file.substr(format.at).starts_with(format.bytes))
      return std::string(" (it is ") + format.name + ")";
  return "";
}

}  // namespace

Image decode_image(const std::vector<std::byte>& file, const std::string& label) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(file, label);
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(file, label);
  refuse(label, ": neither PNG nor JPEG, by its first bytes", format_of(bytes),
         "; convert it or take it away");
}

Image blank_image(uint64_t height, uint64_t width, const std::string& label) {
  if (height == 0 || width == 0 || height > kMostPixels / width)
    refuse(label, ": ", height, " x ", width, " pixels: at least one, at most ", kMostPixels,
           " are read; make it smaller");
  return {static_cast<int64_t>(height), static_cast<int64_t>(width),
          std::vector<uint8_t>(height * width * 3)};
}

void write_planes(const Image& image, uint8_t* to) {
  const size_t pixels = image.rgb.size() / 3;
  for (size_t i = 0; i < image.rgb.size(); ++i) to[i % 3 * pixels + i / 3] = image.rgb[i];
}

}  // namespace data
