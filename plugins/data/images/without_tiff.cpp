// SPDX-License-Identifier: Apache-2.0
//
// In place of tiff.cpp where libtiff is not.
#include "../refuse.h"
#include "image.h"

namespace data {

Image decode_tiff(const std::vector<std::byte>&, const std::string& label) {
  refuse(label,
         ": it is TIFF, and Orrery was built without libtiff: convert it, or build again with "
         "libtiff-dev installed");
}

}  // namespace data
