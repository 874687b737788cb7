// SPDX-License-Identifier: Apache-2.0
//
// Several datasets as one.
#pragma once

#include "data/dataset.h"

namespace orrery {

// Beside each other: samples with the fields of all. Throws Error if their numbers of samples
// differ. REQUIRES: no name of a field occurs twice.
DatasetPtr beside(const std::vector<DatasetPtr>& parts);

// One after another. Throws Error if their fields differ; `names` is what it calls them.
DatasetPtr join(const std::vector<DatasetPtr>& parts, const std::vector<std::string>& names);

// Each part with its share of the samples: its weight out of the sum of weights. An epoch is as
// long as it takes to see every sample of every part; smaller parts are seen again meanwhile.
// Throws Error for weights that are not positive.
DatasetPtr mix(const std::vector<DatasetPtr>& parts, const std::vector<double>& weights);

}  // namespace orrery
