// SPDX-License-Identifier: Apache-2.0
//
// TIFF by libtiff, which makes 8-bit RGB of what it supports. It is told that transparency lies
// beside the colours, so that it leaves them as they are.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "../refuse.h"
#include "image.h"

namespace data {
namespace {

constexpr tmsize_t kMostMemory = tmsize_t{1} << 30;  // of one allocation

// The file, and what libtiff complains of.
struct Source {
  const std::vector<std::byte>& file;
  uint64_t at = 0;
  char why[1024] = "";
};

tmsize_t read_bytes(thandle_t handle, void* to, tmsize_t wanted) {
  auto* source = static_cast<Source*>(handle);
  const uint64_t left = source->file.size() - std::min<uint64_t>(source->at, source->file.size());
  const uint64_t count = std::min(static_cast<uint64_t>(wanted), left);
  std::memcpy(to, source->file.data() + (count ? source->at : 0), count);
  source->at += count;
  return static_cast<tmsize_t>(count);
}

tmsize_t write_bytes(thandle_t, void*, tmsize_t) { return -1; }

toff_t seek(thandle_t handle, toff_t offset, int from) {
  auto* source = static_cast<Source*>(handle);
  if (from == SEEK_CUR) offset += source->at;
  if (from == SEEK_END) offset += source->file.size();
  return source->at = offset;
}

int close_file(thandle_t) { return 0; }

toff_t size_of(thandle_t handle) { return static_cast<Source*>(handle)->file.size(); }

int on_error(TIFF*, void* user, const char*, const char* format, va_list values) {
  auto* source = static_cast<Source*>(user);
  if (!*source->why) std::vsnprintf(source->why, sizeof source->why, format, values);
  return 1;
}

// What decoders warn of is damage, which they fill in, and so is a tag that is not within the file;
// else libtiff warns of oddities.
int on_warning(TIFF* tiff, void* user, const char* module, const char* format, va_list values) {
  const std::string_view from(module ? module : "");
  const bool damage = from.starts_with("JPEGLib") || from.starts_with("Fax") ||
                      std::string_view(format).starts_with("IO error");
  return damage ? on_error(tiff, user, module, format, values) : 1;
}

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using TiffPtr = std::unique_ptr<TIFF, Close>;

TiffPtr open_tiff(Source& source) {
  const std::unique_ptr<TIFFOpenOptions, Close> options(TIFFOpenOptionsAlloc());
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), kMostMemory);
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), on_error, &source);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), on_warning, &source);
  return TiffPtr(TIFFClientOpenExt("", "rm", &source, read_bytes, write_bytes, seek, close_file,
                                   size_of, nullptr, nullptr, options.get()));
}

// Those of smaller copies, which some programs add, do not count.
bool has_more_pages(TIFF* tiff) {
  bool more = false;
  while (!more && TIFFReadDirectory(tiff)) {
    uint32_t kind = 0;
    TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind);
    more = !(kind & FILETYPE_REDUCEDIMAGE);
  }
  TIFFSetDirectory(tiff, 0);
  return more;
}

// Whether colours have been multiplied by their transparency.
bool is_multiplied(TIFF* tiff) {
  uint16_t count = 0, *kinds = nullptr;
  if (!TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) || count == 0) return false;
  if (kinds[0] == EXTRASAMPLE_ASSOCALPHA) return true;
  std::vector<uint16_t> told(kinds, kinds + count);
  told[0] = EXTRASAMPLE_ASSOCALPHA;
  TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, count, told.data());
  return false;
}

uint8_t colour(uint32_t value, uint32_t alpha, bool multiplied) {
  if (!multiplied || alpha == 255 || alpha == 0) return static_cast<uint8_t>(value);
  return static_cast<uint8_t>(std::min(255u, value * 255 / alpha));
}

bool decode(TIFF* tiff, Source& source, Image& image) {
  const bool multiplied = is_multiplied(tiff);
  char why[1024] = "";
  TIFFRGBAImage rgba;
  bool done = TIFFRGBAImageOK(tiff, why) && TIFFRGBAImageBegin(&rgba, tiff, 1, why);
  if (done) {
    rgba.req_orientation = ORIENTATION_TOPLEFT;
    std::vector<uint32_t> pixels(image.rgb.size() / 3);
    done = TIFFRGBAImageGet(&rgba, pixels.data(), rgba.width, rgba.height) && !*source.why;
    TIFFRGBAImageEnd(&rgba);
    uint8_t* to = image.rgb.data();
    for (const uint32_t pixel : pixels)
      for (const uint32_t value : {TIFFGetR(pixel), TIFFGetG(pixel), TIFFGetB(pixel)})
        *to++ = colour(value, TIFFGetA(pixel), multiplied);
  }
  if (!done && !*source.why) std::memcpy(source.why, why, sizeof source.why);
  return done;
}

}  // namespace

Image decode_tiff(const std::vector<std::byte>& file, const std::string& label) {
  Source source{file};
  const TiffPtr tiff = open_tiff(source);
  const auto damaged = [&] {
    refuse(label, ": the TIFF cannot be read (", source.why,
           "); restore it, or save it as RGB of 8 bits");
  };
  if (!tiff || *source.why) damaged();
  if (has_more_pages(tiff.get()))
    refuse(label, ": the TIFF has several pages; save the one that is meant alone");
  source.why[0] = '\0';  // what was wrong with a smaller copy does not matter
  uint32_t width = 0, height = 0;
  uint16_t orientation = ORIENTATION_TOPLEFT;
  TIFFGetField(tiff.get(), TIFFTAG_IMAGEWIDTH, &width);
  TIFFGetField(tiff.get(), TIFFTAG_IMAGELENGTH, &height);
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_ORIENTATION, &orientation);
  if (orientation > ORIENTATION_BOTLEFT)
    refuse(label, ": the TIFF lies on its side (orientation ", orientation, "); save it turned");
  Image image = blank_image(height, width, label);
  if (!decode(tiff.get(), source, image)) damaged();
  return image;
}

}  // namespace data
