// SPDX-License-Identifier: Apache-2.0
#include "image.h"

#include <cstring>
#include <string_view>

#include "../refuse.h"

namespace data {

Image decode_image(const std::vector<std::byte>& file, const std::string& label) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return decode_png(file, label);
  if (bytes.starts_with("\xff\xd8\xff")) return decode_jpeg(file, label);
  refuse(label, ": neither PNG nor JPEG, by its first bytes; convert it or take it away");
}

Image blank_image(uint64_t height, uint64_t width, const std::string& label) {
  if (height == 0 || width == 0 || height > kMostPixels / width)
    refuse(label, ": ", height, " x ", width, " pixels: at least one, at most ", kMostPixels,
           " are read; make it smaller");
  return {static_cast<int64_t>(height), static_cast<int64_t>(width),
          std::vector<uint8_t>(height * width * 3)};
}

}  // namespace data
