// SPDX-License-Identifier: Apache-2.0
//
// BMP with pixels as they are: palettes of 1, 4 and 8 bits, 16 and 32 bits by their masks, 24 bits.
// Debian has no library for this format alone. Numbers are little-endian, rows end at a multiple of
// 4 bytes, and the lowest comes first unless the height is negative.
#include <bit>
#include <cstddef>
#include <cstdlib>

#include "../refuse.h"
#include "image.h"

namespace data {
namespace {

constexpr uint64_t kFileHeader = 14;   // bytes; the header of the image follows
constexpr uint64_t kOldHeader = 12;    // of OS/2, with sizes of 16 bits
constexpr uint64_t kShortHeader = 40;  // masks follow this one, and are part of longer ones

class Bmp {
 public:
  Bmp(const std::vector<std::byte>& file, const std::string& label) : file_(file), label_(label) {
    const uint64_t size = number(14, 4);
    if (size != kOldHeader && (size < kShortHeader || size > 124))
      damaged("a header of ", size, " bytes");
    old_ = size == kOldHeader;
    width_ = old_ ? number(18, 2) : number(18, 4);
    const auto height = static_cast<int32_t>(old_ ? number(20, 2) : number(22, 4));
    from_top_ = height < 0;
    height_ = static_cast<uint64_t>(std::abs(int64_t{height}));
    bits_ = number(old_ ? 24 : 28, 2);
    palette_at_ = kFileHeader + size;
    find_masks();
    find_palette();
  }

  Image decode() const {
    Image image = blank_image(height_, width_, label_);
    const uint64_t first = number(10, 4), used = (width_ * bits_ + 7) / 8, row = (used + 3) / 4 * 4;
    if (first > file_.size() || (height_ - 1) * row + used > file_.size() - first)
      damaged("it is cut short");
    uint8_t* to = image.rgb.data();
    for (uint64_t y = 0; y < height_; ++y) {
      const uint64_t at = first + (from_top_ ? y : height_ - 1 - y) * row;
      for (uint64_t x = 0; x < width_; ++x, to += 3) write_pixel(at, x, to);
    }
    return image;
  }

 private:
  template <class... Parts>
  [[noreturn]] void damaged(const Parts&... parts) const {
    refuse(label_, ": the BMP cannot be read (", parts...,
           "); restore it, or save it with 24 bits and without compression");
  }

  uint32_t number(uint64_t at, unsigned bytes) const {
    if (at + bytes > file_.size()) damaged("it is cut short");
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; ++i)
      value |= std::to_integer<uint32_t>(file_[at + i]) << (8 * i);
    return value;
  }

  void find_masks() {
    constexpr uint32_t kNone = 0, kMasks = 3;
    const uint32_t compression = old_ ? kNone : number(30, 4);
    const bool by_masks = bits_ == 16 || bits_ == 32;
    if (compression != kNone && !(compression == kMasks && by_masks))
      damaged("compression ", compression, " of ", bits_, " bits is not supported");
    if (bits_ == 16) masks_[0] = 0x7c00, masks_[1] = 0x3e0, masks_[2] = 0x1f;
    if (compression == kNone) return;
    for (unsigned i = 0; i < 3; ++i) {
      masks_[i] = number(kFileHeader + kShortHeader + 4 * i, 4);
      if (masks_[i] == 0) damaged("a mask without bits");
    }
  }

  void find_palette() {
    if (bits_ == 16 || bits_ == 24 || bits_ == 32) return;
    if (bits_ != 1 && bits_ != 4 && bits_ != 8) damaged(bits_, " bits for a pixel");
    const uint64_t given = old_ ? 0 : number(46, 4);
    colours_ = given ? given : uint64_t{1} << bits_;
  }

  // A colour is blue, green, red.
  void write_colour(uint64_t at, uint8_t* to) const {
    for (unsigned i = 0; i < 3; ++i) to[i] = static_cast<uint8_t>(number(at + 2 - i, 1));
  }

  void write_pixel(uint64_t row, uint64_t x, uint8_t* to) const {
    if (bits_ == 24) return write_colour(row + 3 * x, to);
    if (bits_ < 16) {
      const uint64_t bit = x * bits_;
      const uint32_t byte = number(row + bit / 8, 1);
      const uint32_t index = byte >> (8 - bits_ - bit % 8) & ((1u << bits_) - 1);
      if (index >= colours_) damaged("colour ", index, " of a palette of ", colours_);
      return write_colour(palette_at_ + index * (old_ ? 3 : 4), to);
    }
    const uint32_t pixel = number(row + x * bits_ / 8, static_cast<unsigned>(bits_ / 8));
    for (unsigned i = 0; i < 3; ++i) {
      const int shift = std::countr_zero(masks_[i]);
      const uint64_t most = masks_[i] >> shift, value = (pixel & masks_[i]) >> shift;
      to[i] = static_cast<uint8_t>(value * 255 / most);
    }
  }

  const std::vector<std::byte>& file_;
  const std::string& label_;
  bool old_ = false, from_top_ = false;
  uint64_t width_ = 0, height_ = 0, bits_ = 0, palette_at_ = 0, colours_ = 0;
  uint32_t masks_[3] = {0xff0000, 0xff00, 0xff};  // of red, green, blue
};

}  // namespace

Image decode_bmp(const std::vector<std::byte>& file, const std::string& label) {
  return Bmp(file, label).decode();
}

}  // namespace data
