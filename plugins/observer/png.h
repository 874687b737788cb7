// SPDX-License-Identifier: Apache-2.0
//
// An image as a PNG file: signature, IHDR, one IDAT, IEND. Each chunk is its length, type, data and
// the CRC-32 of type and data, all big-endian.
#pragma once

#include <orrery/observer.h>
#include <orrery/sdk/plugin.hpp>

#include <zlib.h>

#include <string>
#include <string_view>

namespace observer {

inline std::string png_number(uint32_t n) {
  return {static_cast<char>(n >> 24), static_cast<char>(n >> 16), static_cast<char>(n >> 8),
          static_cast<char>(n)};
}

inline std::string png_chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const uLong crc = crc32(0, reinterpret_cast<const Bytef*>(body.data()), uInt(body.size()));
  return png_number(uint32_t(data.size())) + body + png_number(uint32_t(crc));
}

// REQUIRES: an ORR_EVENT_IMAGE.
inline std::string png(const orr_event_record& image) {
  const size_t row = size_t(image.width) * size_t(image.channels);
  std::string lines;  // each begins with the number of its filter: none
  for (int32_t y = 0; y < image.height; ++y)
    lines.append(1, '\0').append(reinterpret_cast<const char*>(image.pixels) + size_t(y) * row,
                                 row);
  uLongf size = compressBound(lines.size());
  std::string packed(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                reinterpret_cast<const Bytef*>(lines.data()), lines.size(), 6) != Z_OK)
    throw orr::Error(ORR_FAILED, "an image could not be compressed: there is no memory for it");
  packed.resize(size);
  const char colours = image.channels == 1 ? 0 : image.channels == 3 ? 2 : 6;
  const std::string head = png_number(uint32_t(image.width)) + png_number(uint32_t(image.height)) +
                           std::string{8, colours, 0, 0, 0};
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", head) + png_chunk("IDAT", packed) +
         png_chunk("IEND", "");
}

}  // namespace observer
