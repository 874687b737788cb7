// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include "../refuse.h"

namespace data {

namespace {

using namespace std::string_view_literals;

// What a file has at a place.
struct Mark {
  size_t at;
  std::string_view bytes;

  bool in(std::string_view file) const {
    return file.size() > at && file.substr(at).starts_with(bytes);
  }
};

struct Format {
  Mark mark;
  Image (*decode)(const std::vector<std::byte>& file, const std::string& label);
};
constexpr Format kFormats[] = {{{0, "\x89PNG\r\n\x1a\n"sv}, decode_png},
                               {{0, "\xff\xd8\xff"sv}, decode_jpeg},
                               {{8, "WEBP"sv}, decode_webp},
                               {{0, "BM"sv}, decode_bmp},
                               {{0, "II*\0"sv}, decode_tiff},
                               {{0, "MM\0*"sv}, decode_tiff},
                               {{0, "II+\0"sv}, decode_tiff},
                               {{0, "MM\0+"sv}, decode_tiff}};

// Others that files of these endings have at times.
struct Other {
  Mark mark;
  const char* name;
};
constexpr Other kOthers[] = {{{0, "GIF8"sv}, "GIF"},
                             {{4, "ftypavif"sv}, "AVIF"},
                             {{4, "ftyphei"sv}, "HEIC"},
                             {{4, "ftypmif1"sv}, "HEIC"},
                             {{0, "<"sv}, "a page of a web server, or SVG"},
                             {{0, "\0\0\0\0"sv}, "zeros"}};

std::string format_of(std::string_view file) {
  if (file.empty()) return " (the file is empty)";
  for (const Other& other : kOthers)
    if (other.mark.in(file)) return std::string(" (it is ") + other.name + ")";
  return "";
}

}  // namespace

std::string image_endings() {
  std::string text;
  for (const std::string_view& ending : kImageEndings) {
    if (!text.empty()) text += &ending == &kImageEndings.back() ? " or " : ", ";
    (text += '.') += ending;
  }
  return text;
}

Image decode_image(const std::vector<std::byte>& file, const std::string& label) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  for (const Format& format : kFormats)
    if (format.mark.in(bytes)) return format.decode(file, label);
  refuse(label, ": neither PNG, JPEG, WebP, BMP nor TIFF, by its first bytes", format_of(bytes),
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
