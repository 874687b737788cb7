// SPDX-License-Identifier: Apache-2.0
//
// In place of webp.cpp where libwebp is not.
#include "../refuse.h"
#include "image.h"

namespace data {

Image decode_webp(const std::vector<std::byte>&, const std::string& label) {
  refuse(label,
         ": it is WebP, and Orrery was built without libwebp: convert it, or build again with "
         "libwebp-dev installed");
}

}  // namespace data
