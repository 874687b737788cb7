// SPDX-License-Identifier: Apache-2.0
//
// MNIST's idx files: two zero bytes, the kind of the elements, the number of dims, the dims as
// big-endian 32-bit numbers, and the elements, big-endian.
#pragma once

#include "data/dataset.h"

namespace orrery {

// Images as x, [C,H,W] in `dtype`: bytes divided by 255 where that is real; labels as y, i32.
// Throws Error that names the file for one that is not idx, or of another size than it says.
DatasetPtr idx_files(const std::string& images, const std::string& labels, int32_t dtype);

}  // namespace orrery
