// SPDX-License-Identifier: Apache-2.0
//
// PNG by libpng, whose errors jump: nothing with a destructor lives in what they leave.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "../refuse.h"
#include "image.h"

namespace data {
namespace {

struct Reader {
  const std::byte* at;
  size_t left;
  char why[128] = "";  // what libpng complains of
};

void on_error(png_structp png, png_const_charp message) {
  auto* reader = static_cast<Reader*>(png_get_error_ptr(png));
  std::strncpy(reader->why, message, sizeof reader->why - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, size_t count) {
  auto* reader = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader->left) png_error(png, "the file is cut short");
  std::memcpy(to, reader->at, count);
  reader->at += count, reader->left -= count;
}

// Any kind of pixels as 8-bit RGB.
void ask_for_rgb(png_structp png, png_infop info) {
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

// false: reader.why says why.
bool read_size(png_structp png, png_infop info, uint64_t& height, uint64_t& width) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_info(png, info);
  height = png_get_image_height(png, info), width = png_get_image_width(png, info);
  ask_for_rgb(png, info);
  return true;
}

bool read_rows(png_structp png, png_bytepp rows) {
  if (setjmp(png_jmpbuf(png))) return false;
  png_read_image(png, rows);
  png_read_end(png, nullptr);
  return true;
}

// libpng's two objects.
class Png {
 public:
  explicit Png(Reader& reader)
      : png(png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning)) {
    info = png ? png_create_info_struct(png) : nullptr;
    if (info) png_set_read_fn(png, &reader, read_bytes);
  }
  ~Png() { png_destroy_read_struct(&png, &info, nullptr); }
  Png(const Png&) = delete;

  png_structp png;
  png_infop info;
};

}  // namespace

Image decode_png(const std::vector<std::byte>& file, const std::string& label) {
  Reader reader{file.data(), file.size()};
  const Png png(reader);
  if (!png.info) fail(ORR_FAILED, label, ": libpng does not start");
  const auto damaged = [&] {
    refuse(label, ": the PNG cannot be read (", reader.why, "); restore it or take it away");
  };
  uint64_t height = 0, width = 0;
  if (!read_size(png.png, png.info, height, width)) damaged();
  Image image = blank_image(height, width, label);
  std::vector<png_bytep> rows;
  for (uint64_t y = 0; y < height; ++y) rows.push_back(image.rgb.data() + y * width * 3);
  if (!read_rows(png.png, rows.data())) damaged();
  return image;
}

}  // namespace data
