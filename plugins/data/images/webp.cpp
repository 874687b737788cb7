// SPDX-License-Identifier: Apache-2.0
//
// WebP by libwebp.
#include <webp/decode.h>

#include "../refuse.h"
#include "image.h"

namespace data {
namespace {

const char* reason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY: return "there is not enough memory";
    case VP8_STATUS_NOT_ENOUGH_DATA: return "it is cut short";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "it has a feature that libwebp does not support";
    default: return "it is altered";
  }
}

void check(VP8StatusCode status, const std::string& label) {
  if (status != VP8_STATUS_OK)
    refuse(label, ": the WebP cannot be read (", reason(status), "); restore it or take it away");
}

}  // namespace

Image decode_webp(const std::vector<std::byte>& file, const std::string& label) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) fail(ORR_FAILED, label, ": libwebp is of another version");
  check(WebPGetFeatures(bytes, file.size(), &config.input), label);
  if (config.input.has_animation)
    refuse(label, ": the WebP is an animation; save the image that is meant alone");
  Image image = blank_image(static_cast<uint64_t>(config.input.height),
                            static_cast<uint64_t>(config.input.width), label);
  config.output.colorspace = MODE_RGB, config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.rgb.data(), static_cast<int>(image.width * 3), image.rgb.size()};
  check(WebPDecode(bytes, file.size(), &config), label);
  return image;
}

}  // namespace data
