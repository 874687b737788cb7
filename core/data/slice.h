// SPDX-License-Identifier: Apache-2.0
//
// Some of a dataset's samples.
#pragma once

#include "data/dataset.h"

namespace orrery {

// REQUIRES: 0 <= begin, 1 <= count, begin + count <= data->samples().
DatasetPtr slice(DatasetPtr data, int64_t begin, int64_t count);

// These, in this order; they do not overlap, also those of text. REQUIRES: there is one at least,
// and each is 0 <= sample < data->samples().
DatasetPtr chosen(DatasetPtr data, std::vector<int64_t> samples);

}  // namespace orrery
