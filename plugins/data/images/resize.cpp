// SPDX-License-Identifier: Apache-2.0
#include "resize.h"

#include <algorithm>
#include <cmath>

namespace data {
namespace {

// Weights are whole numbers of 2^-22, as Pillow's are: a sum of products of them with 8-bit pixels
// fits into 32 bits.
constexpr int kBits = 22;

// The pixels of a line that one pixel of the resized line is made of.
struct Taps {
  int64_t first;
  std::vector<int32_t> weights;
};

// A triangle over twice the distance of the pixels on the coarser side.
std::vector<Taps> taps_of(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double reach = std::max(scale, 1.0);
  std::vector<Taps> all;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - reach + 0.5));
    const int64_t last = std::min(from, static_cast<int64_t>(centre + reach + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      const double distance = std::fabs((static_cast<double>(x) - centre + 0.5) / reach);
      sum += weights.emplace_back(std::max(0.0, 1.0 - distance));
    }
    Taps taps{first, {}};
    for (double weight : weights)
      taps.weights.push_back(static_cast<int32_t>(weight / sum * (1 << kBits) + 0.5));
    all.push_back(taps);
  }
  return all;
}

// A pixel's three colours out of pixels `step` bytes apart.
void blend(const Taps& taps, const uint8_t* line, int64_t step, uint8_t* to) {
  for (int colour = 0; colour < 3; ++colour) {
    int32_t sum = 1 << (kBits - 1);
    const uint8_t* at = line + taps.first * step + colour;
    for (int32_t weight : taps.weights) sum += weight * *at, at += step;
    to[colour] = static_cast<uint8_t>(std::clamp(sum >> kBits, 0, 255));
  }
}

Image blank(int64_t height, int64_t width, const std::string& label) {
  return blank_image(static_cast<uint64_t>(height), static_cast<uint64_t>(width), label);
}

Image resize_width(const Image& image, int64_t width, const std::string& label) {
  Image made = blank(image.height, width, label);
  const std::vector<Taps> taps = taps_of(image.width, width);
  uint8_t* to = made.rgb.data();
  for (int64_t y = 0; y < image.height; ++y)
    for (const Taps& each : taps)
      blend(each, image.rgb.data() + y * image.width * 3, 3, to), to += 3;
  return made;
}

Image resize_height(const Image& image, int64_t height, const std::string& label) {
  Image made = blank(height, image.width, label);
  uint8_t* to = made.rgb.data();
  for (const Taps& each : taps_of(image.height, height))
    for (int64_t x = 0; x < image.width; ++x)
      blend(each, image.rgb.data() + x * 3, image.width * 3, to), to += 3;
  return made;
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width, const std::string& label) {
  const Image wide = image.width == width ? image : resize_width(image, width, label);
  return wide.height == height ? wide : resize_height(wide, height, label);
}

Image square(const Image& image, int64_t size, const std::string& label) {
  const int64_t shorter = std::min(image.height, image.width);
  const Image resized =
      resize(image, size * image.height / shorter, size * image.width / shorter, label);
  const auto middle = [&](int64_t edge) {
    return static_cast<int64_t>(std::nearbyint(static_cast<double>(edge - size) / 2));
  };
  const int64_t top = middle(resized.height), left = middle(resized.width);
  Image made{size, size, {}};
  for (int64_t y = top; y < top + size; ++y) {
    const auto row = resized.rgb.begin() + (y * resized.width + left) * 3;
    made.rgb.insert(made.rgb.end(), row, row + size * 3);
  }
  return made;
}

}  // namespace data
