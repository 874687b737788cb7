// SPDX-License-Identifier: Apache-2.0
//
// PNG, JPEG, WebP, BMP and TIFF, known by their contents, as 8-bit RGB. [any thread]
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace data {

struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // [height][width][3]
};

constexpr int64_t kMostEdge = 4096;  // that a script may ask for

// More are refused: a small file may claim any number.
constexpr int64_t kMostPixels = int64_t{1} << 26;

// How names of files end that hold images, in small letters.
constexpr std::array<std::string_view, 7> kImageEndings = {"png", "jpg", "jpeg", "webp",
                                                           "bmp", "tif", "tiff"};
// As messages list them: ".png, .jpg, ... or .tiff".
std::string image_endings();

// Grey is repeated, transparency left out, CMYK and YCCK converted, as by Pillow's convert("RGB"),
// and 16 bits cut to the upper 8. Throws Error, which begins with `label`, for another format, and
// what is cut short or damaged.
Image decode_image(const std::vector<std::byte>& file, const std::string& label);

// All red values, then all green ones, then all blue ones.
void write_planes(const Image& image, uint8_t* to);

// The parts of it. REQUIRES: the file begins as such files do.
Image decode_png(const std::vector<std::byte>& file, const std::string& label);
Image decode_jpeg(const std::vector<std::byte>& file, const std::string& label);
Image decode_bmp(const std::vector<std::byte>& file, const std::string& label);
// Both refuse where Orrery was built without the library.
Image decode_webp(const std::vector<std::byte>& file, const std::string& label);
Image decode_tiff(const std::vector<std::byte>& file, const std::string& label);

// Throws Error unless there is something of this size to decode; otherwise an image of it.
Image blank_image(uint64_t height, uint64_t width, const std::string& label);

}  // namespace data
