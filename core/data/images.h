// SPDX-License-Identifier: Apache-2.0
//
// A directory of images: in it a directory for each class, with PNG and JPEG files.
#pragma once

#include "data/dataset.h"

namespace orrery {

// Images as x, [3,size,size] in `dtype` (data/pixels.h, data/resize.h); the number of the class, by
// the order of the directories' names, as y, i32. Files are found by their endings and read when
// their samples are. Throws Error that names the directory or file.
DatasetPtr image_directory(const std::string& directory, int64_t size, int32_t dtype);

}  // namespace orrery
