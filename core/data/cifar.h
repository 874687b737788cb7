// SPDX-License-Identifier: Apache-2.0
//
// The binary files of CIFAR-10 and CIFAR-100: records of one label byte (two for CIFAR-100: coarse
// and fine) and 3 x 32 x 32 bytes.
#pragma once

#include "data/dataset.h"

namespace orrery {

// Images as x, [3,32,32] in `dtype` (data/pixels.h), labels as y, i32; of CIFAR-100 the fine ones,
// and `coarse`. `classes` is 10 or 100. Throws Error that names the file for one whose size or
// labels are not those of so many classes.
DatasetPtr cifar_files(const std::vector<std::string>& paths, int64_t classes, int32_t dtype);

}  // namespace orrery
