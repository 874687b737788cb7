// SPDX-License-Identifier: Apache-2.0
//
// JPEG by libjpeg, whose errors jump: nothing with a destructor lives in what they leave.
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs it
#include <cstring>
//
#include <jerror.h>
#include <jpeglib.h>

#include "../refuse.h"
#include "image.h"

namespace data {
namespace {

struct Errors {
  jpeg_error_mgr manager;  // first: libjpeg knows the address of this
  std::jmp_buf back;
  char why[JMSG_LENGTH_MAX] = "";
};

void on_error(j_common_ptr jpeg) {
  auto* errors = reinterpret_cast<Errors*>(jpeg->err);
  jpeg->err->format_message(jpeg, errors->why);
  std::longjmp(errors->back, 1);
}

// A warning is damage, but for bytes that are passed over between the parts of a file.
void on_message(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) on_error(jpeg);
}

bool read_size(jpeg_decompress_struct& jpeg, Errors& errors, const std::vector<std::byte>& file) {
  if (setjmp(errors.back)) return false;
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(&jpeg);
  return true;
}

// A row in CMYK, in which 0 is full ink as Adobe's programs write it, as RGB. As Pillow computes
// it: a product is divided by 255 and rounded.
void write_rgb(const std::vector<uint8_t>& cmyk, uint8_t* to) {
  for (size_t at = 0; at < cmyk.size(); at += 4)
    for (size_t colour = 0; colour < 3; ++colour) {
      const int ink = 255 - cmyk[at + colour], light = cmyk[at + 3];
      const int product = ink * light + 128;
      *to++ = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
    }
}

// `cmyk` has room for a row if the file has four components.
bool read_rows(jpeg_decompress_struct& jpeg, Errors& errors, std::vector<uint8_t>& cmyk,
               uint8_t* to) {
  if (setjmp(errors.back)) return false;
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t* rgb = to + static_cast<size_t>(jpeg.output_scanline) * jpeg.output_width * 3;
    JSAMPROW row = cmyk.empty() ? rgb : cmyk.data();
    jpeg_read_scanlines(&jpeg, &row, 1);
    if (!cmyk.empty()) write_rgb(cmyk, rgb);
  }
  jpeg_finish_decompress(&jpeg);
  return true;
}

// libjpeg's object.
class Jpeg {
 public:
  explicit Jpeg(Errors& errors) {
    object.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = on_error;
    errors.manager.emit_message = on_message;
    jpeg_create_decompress(&object);
  }
  ~Jpeg() { jpeg_destroy_decompress(&object); }
  Jpeg(const Jpeg&) = delete;

  jpeg_decompress_struct object{};
};

}  // namespace

Image decode_jpeg(const std::vector<std::byte>& file, const std::string& label) {
  Errors errors{};
  Jpeg jpeg(errors);
  const auto damaged = [&] {
    refuse(label, ": the JPEG cannot be read (", errors.why,
           "); restore it, or save it as RGB of 8 bits");
  };
  if (!read_size(jpeg.object, errors, file)) damaged();
  Image image = blank_image(jpeg.object.output_height, jpeg.object.output_width, label);
  std::vector<uint8_t> cmyk;
  if (jpeg.object.out_color_space == JCS_CMYK) cmyk.resize(size_t{4} * jpeg.object.output_width);
  if (!read_rows(jpeg.object, errors, cmyk, image.rgb.data())) damaged();
  return image;
}

}  // namespace data
