// SPDX-License-Identifier: Apache-2.0
//
// Images of one size, as torchvision's Resize and CenterCrop make them.
#pragma once

#include "image.h"

namespace data {

// Both throw Error, which begins with `label`, for what gets too large.
// Bilinear, each pixel a mean over all that it stands for; the pixels are those of Pillow's resize.
Image resize(const Image& image, int64_t height, int64_t width, const std::string& label);

// Resized until the shorter edge is `size`, and of that the square in the middle.
Image square(const Image& image, int64_t size, const std::string& label);

}  // namespace data
