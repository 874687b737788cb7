// SPDX-License-Identifier: Apache-2.0
//
// Some consecutive samples of a dataset.
#pragma once

#include "data/dataset.h"

namespace orrery {

// REQUIRES: 0 <= begin, 1 <= count, begin + count <= data->samples().
DatasetPtr slice(DatasetPtr data, int64_t begin, int64_t count);

}  // namespace orrery
